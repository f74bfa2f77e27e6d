// SPDX-License-Identifier: Apache-2.0
// FlowNetwork against SimGrid on random networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "sim/network/flow_network.h"
#include "tests/simgrid/plain_simgrid.h"

namespace orrery::shared_links_test {
namespace {

namespace sg4 = simgrid::s4u;

struct Message {
  std::vector<std::uint32_t> route;
  std::uint64_t bytes = 0;
  Picoseconds start = 0;
};
struct Case {
  std::vector<double> capacities;
  std::vector<Message> messages;
};

/// 2 to 16 links between 0.1 and 1 GB/s, 2 to 16 messages of 10 to 100 MB over 1 to 5 of them, that
/// start within 0.2 s.
Case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  Case c;
  c.capacities.resize(2 + random() % 15);
  for (double& capacity : c.capacities) {
    capacity = random() % 3 == 0 ? 1e9 : 1e9 * uniform(random);
  }
  c.messages.resize(2 + random() % 15);
  for (Message& message : c.messages) {
    std::vector<std::uint32_t> links(c.capacities.size());
    for (std::uint32_t l = 0; l < links.size(); ++l) {
      links[l] = l;
    }
    const std::size_t hops = 1 + random() % std::min<std::size_t>(5, links.size());
    for (std::size_t hop = 0; hop < hops; ++hop) {
      std::swap(links[hop], links[hop + random() % (links.size() - hop)]);
    }
    message.route.assign(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(hops));
    message.bytes = static_cast<std::uint64_t>(1e8 * uniform(random));
    message.start = random() % 4 == 0 ? 0 : random() % 200'000'000'000;
  }
  return c;
}

std::vector<double> ends_of_flow_network(const Case& c) {
  Costs costs;
  for (const double capacity : c.capacities) {
    costs.links.emplace_back(capacity);
  }
  std::vector<std::uint32_t> order;
  for (const Message& message : c.messages) {
    TransferCost cost;
    for (const std::uint32_t link : message.route) {
      cost.loads.push_back({link, static_cast<double>(message.bytes)});
    }
    order.push_back(static_cast<std::uint32_t>(costs.transfers.size()));
    costs.transfers.push_back(cost);
  }
  const auto start = [&](std::size_t i) { return c.messages[order[i]].start; };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return c.messages[a].start < c.messages[b].start;
  });
  FlowNetwork network(costs);
  std::vector<double> ends(order.size());
  std::size_t started = 0;
  while (started < order.size() || network.in_flight() > 0) {
    const Picoseconds next_start = started < order.size() ? start(started) : kNever;
    const Picoseconds now = std::min(next_start, network.next_end());
    while (network.next_end() == now) {
      ends[network.end_next()] = to_seconds(now).base();
    }
    while (started < order.size() && start(started) == now) {
      network.start(order[started++], now);
    }
    network.settle(now);
  }
  return ends;
}

/// All cases side by side, as zones of one platform.
std::vector<std::vector<double>> ends_of_simgrid(const std::vector<Case>& cases) {
  const test::PlainSimGrid plain;
  sg4::Engine::set_config("surf/precision:1e-12");
  sg4::Engine::set_config("maxmin/precision:1e-9");
  auto* world = sg4::create_full_zone("world");
  std::vector<std::vector<double>> ends(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "case" + std::to_string(i);
    auto* zone = sg4::create_full_zone(name)->set_parent(world);
    std::vector<const sg4::Link*> links;
    for (const double capacity : cases[i].capacities) {
      const std::string link = name + "link" + std::to_string(links.size());
      links.push_back(zone->create_link(link, capacity)->set_latency(0)->seal());
    }
    ends[i].resize(cases[i].messages.size());
    for (std::size_t m = 0; m < cases[i].messages.size(); ++m) {
      const Message& message = cases[i].messages[m];
      const std::string host = name + "host" + std::to_string(m);
      auto* from = zone->create_host(host + "from", 1e9)->seal();
      auto* to = zone->create_host(host + "to", 1e9)->seal();
      std::vector<sg4::LinkInRoute> route;
      for (const std::uint32_t link : message.route) {
        route.emplace_back(links[link]);
      }
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
      sg4::Actor::create("sender", from, [from, to, &message, end = &ends[i][m]] {
        sg4::this_actor::sleep_until(to_seconds(message.start).base());
        sg4::Comm::sendto(from, to, message.bytes);
        *end = sg4::Engine::get_clock();
      });
    }
    zone->seal();
  }
  world->seal();
  plain.engine().run();
  return ends;
}

TEST(SharedLinks, EndAsInSimGridOnAThousandRandomNetworks) {
  std::vector<Case> cases;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    cases.push_back(random_case(seed));
  }
  const auto expected = ends_of_simgrid(cases);
  double worst = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::vector<double> ends = ends_of_flow_network(cases[i]);
    for (std::size_t m = 0; m < ends.size(); ++m) {
      ASSERT_GT(expected[i][m], 0) << "case " << i << " message " << m;
      const double error = std::abs(ends[m] / expected[i][m] - 1);
      worst = std::max(worst, error);
      ASSERT_LE(error, 1e-6) << "case " << i << " message " << m;
    }
  }
  RecordProperty("worst", std::to_string(worst));
  std::printf("worst relative difference of an end: %.2g\n", worst);
}

}  // namespace
}  // namespace orrery::shared_links_test
