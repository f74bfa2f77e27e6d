// SPDX-License-Identifier: Apache-2.0
// F1 to F3: the same messages through FlowNetwork and through SimGrid, in messages per CPU second.
//
// What is compared: SimGrid with the plain fluid model (CM02, all correction factors off, no
// latency), driven in the cheapest way that it offers: one-sided communications, one actor for an
// all-to-all and one per rank for a ring, routes prepared. Both sides are timed from the first
// message to the last, without building the platform. SimGrid's share includes what its interface
// brings with it (an object and a name per communication, actors that wait), which a simulation on
// top of it cannot leave out; FlowNetwork's includes the loop that starts the next messages.
// SimGrid computes with its default precision (1e-5 of a rate or size), FlowNetwork to rounding.
// Either has to end at the same time, to 1e-6.
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/network/flow_network.h"
#include "tests/bench/contest.h"
#include "tests/bench/traffic.h"
#include "tests/simgrid/plain_simgrid.h"

namespace orrery::bench {
namespace {

namespace sg4 = simgrid::s4u;

FlowNetwork make_network(const Traffic& traffic) {
  Costs costs;
  costs.links.assign(std::size_t{traffic.ranks} * 2, BytesPerSecond(traffic.capacity));
  for (const Traffic::Chain& chain : traffic.chains) {
    TransferCost cost;
    cost.loads = {{chain.from, traffic.bytes}, {traffic.ranks + chain.to, traffic.bytes}};
    costs.transfers.push_back(cost);
  }
  return FlowNetwork(costs, FlowNetwork::Links::kSeparate);
}

/// Runs all messages; when the last ended.
Picoseconds run(FlowNetwork& network, const Traffic& traffic) {
  std::vector<std::uint32_t> done(traffic.chains.size(), 0);
  const auto start_next = [&](std::uint32_t chain, Picoseconds now) {
    if (done[chain] < traffic.steps) {
      network.start(chain, now, traffic.size(chain, done[chain]++) / traffic.bytes);
    }
  };
  for (std::uint32_t chain = 0; chain < traffic.chains.size(); ++chain) {
    start_next(chain, 0);
  }
  network.settle(0);
  Picoseconds now = 0;
  while (network.next_end() != kNever) {
    now = network.next_end();
    while (network.next_end() == now) {
      start_next(network.end_next(), now);
    }
    network.settle(now);
  }
  return now;
}

Sample ours(const Traffic& traffic) {
  FlowNetwork network = make_network(traffic);
  const double begin = cpu_seconds();
  run(network, traffic);
  return {(cpu_seconds() - begin) / static_cast<double>(traffic.messages()), 0};
}

std::vector<sg4::Host*> make_platform(const Traffic& traffic) {
  auto* zone = sg4::create_full_zone("zone");
  std::vector<sg4::Host*> hosts;
  std::vector<const sg4::Link*> out, in;
  for (std::uint32_t rank = 0; rank < traffic.ranks; ++rank) {
    const std::string name = std::to_string(rank);
    hosts.push_back(zone->create_host("host" + name, 1e9)->seal());
    out.push_back(zone->create_link("out" + name, traffic.capacity)->set_latency(0)->seal());
    in.push_back(zone->create_link("in" + name, traffic.capacity)->set_latency(0)->seal());
  }
  for (const Traffic::Chain& chain : traffic.chains) {
    zone->add_route(hosts[chain.from]->get_netpoint(), hosts[chain.to]->get_netpoint(), nullptr,
                    nullptr, {sg4::LinkInRoute(out[chain.from]), sg4::LinkInRoute(in[chain.to])},
                    false);
  }
  zone->seal();
  return hosts;
}

void add_actors(const Traffic& traffic, const std::vector<sg4::Host*>& hosts) {
  const auto bytes = [&traffic](std::size_t chain, std::uint32_t step) {
    return static_cast<std::uint64_t>(traffic.size(chain, step));
  };
  if (traffic.steps == 1) {
    sg4::Actor::create("all", hosts[0], [&traffic, &hosts, bytes] {
      std::vector<sg4::CommPtr> messages;
      for (std::size_t c = 0; c < traffic.chains.size(); ++c) {
        const Traffic::Chain& chain = traffic.chains[c];
        messages.push_back(
            sg4::Comm::sendto_async(hosts[chain.from], hosts[chain.to], bytes(c, 0)));
      }
      for (const sg4::CommPtr& message : messages) {
        message->wait();
      }
    });
    return;
  }
  for (std::size_t c = 0; c < traffic.chains.size(); ++c) {
    sg4::Actor::create("chain", hosts[0], [&traffic, &hosts, bytes, c] {
      const Traffic::Chain& chain = traffic.chains[c];
      for (std::uint32_t step = 0; step < traffic.steps; ++step) {
        sg4::Comm::sendto(hosts[chain.from], hosts[chain.to], bytes(c, step));
      }
    });
  }
}

Sample simgrid(const Traffic& traffic) {
  const test::PlainSimGrid plain;
  const std::vector<sg4::Host*> hosts = make_platform(traffic);
  const double begin = cpu_seconds();
  add_actors(traffic, hosts);
  plain.engine().run();
  const double seconds = cpu_seconds() - begin;
  FlowNetwork network = make_network(traffic);
  const double end = to_seconds(run(network, traffic)).base();
  if (std::abs(sg4::Engine::get_clock() / end - 1) > 1e-6) {
    throw std::runtime_error("SimGrid ends at another time: " +
                             std::to_string(sg4::Engine::get_clock() / end - 1));
  }
  return {seconds / static_cast<double>(traffic.messages()), 0};
}

void compare(const std::string& id, const std::string& name, const Traffic& traffic,
             double demand) {
  add_contestant("flow/" + name, [traffic] { return ours(traffic); });
  add_contestant("simgrid/" + name, [traffic] { return simgrid(traffic); });
  add_comparison({id, name + ": SimGrid / ours, time per message", "simgrid/" + name,
                  "flow/" + name, Quantity::kSeconds, Limit::kAtLeast, demand});
}

void add_simgrid_contest() {
  compare("F1", "all-to-all on 72", nvl72_all_to_all(Sizes::kEqual), 50);
  compare("F2", "all-to-all on 72, jittered", nvl72_all_to_all(Sizes::kJittered), 5);
  compare("F3", "ring of 1,024", ring_1024(Sizes::kEqual), 20);
  compare("F3", "ring of 1,024, jittered", ring_1024(Sizes::kJittered), 20);
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
  orrery::bench::add_simgrid_contest();
  return orrery::bench::run_contest(argc, argv);
}
