// SPDX-License-Identifier: Apache-2.0
// Flows over shared links: the solver against itself, in flows per CPU second. Against SimGrid:
// simgrid_bench.cpp.
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/network/flow_network.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"

namespace orrery::bench {
namespace {

using Resolve = FlowNetwork::Resolve;

/// A fat tree of two tiers without oversubscription: 4,096 hosts, 128 leaves, 32 spines. In step
/// k of an all-to-all in pairs, host h sends to h + 1000 + 37 k over the spine that a hash chooses,
/// so that messages collide; when it has been sent, the next follows.
class EcmpSteps {
 public:
  EcmpSteps(std::uint32_t steps, Resolve resolve)
      : steps_(steps),
        sent_(kHosts, 0),
        network_(costs(), FlowNetwork::Links::kSeparate, resolve) {}

  /// Runs all steps; the number of messages.
  std::uint64_t run() {
    for (std::uint32_t host = 0; host < kHosts; ++host) {
      send(host, 0);
    }
    network_.settle(0);
    std::uint64_t settled = 0;
    while (network_.next_end() != kNever) {
      const Picoseconds now = network_.next_end();
      while (network_.next_end() == now) {
        const std::uint32_t message = network_.end_next();
        network_.remove(message);
        send(host_of_[message], now);
      }
      network_.settle(now);
      if (++settled % 1000 == 0 && network_.audit() > 1e-9) {
        throw std::runtime_error("rates are not max-min fair");
      }
    }
    return std::uint64_t{kHosts} * steps_;
  }
  double work() const { return static_cast<double>(network_.rates_computed()); }

 private:
  static constexpr std::uint32_t kHosts = 4096, kLeaves = 128, kSpines = 32;
  static constexpr std::uint32_t kPerLeaf = kHosts / kLeaves;
  // Links: out of and into each host, then up and down between each leaf and spine.
  static constexpr std::uint32_t kUp = 2 * kHosts, kDown = kUp + kLeaves * kSpines;

  static Costs costs() {
    Costs costs;
    costs.links.assign(kDown + kLeaves * kSpines, BytesPerSecond(50e9));
    return costs;
  }

  void send(std::uint32_t host, Picoseconds now) {
    if (sent_[host] == steps_) {
      return;
    }
    const std::uint32_t to = (host + 1000 + 37 * sent_[host]++) % kHosts;
    const auto spine = static_cast<std::uint32_t>(random_(kSpines));
    const double bytes = 1e6 * (0.9 + 0.2 * static_cast<double>(random_(1U << 20)) / (1U << 20));
    TransferCost cost;
    cost.loads = {{host, bytes},
                  {kHosts + to, bytes},
                  {kUp + host / kPerLeaf * kSpines + spine, bytes},
                  {kDown + to / kPerLeaf * kSpines + spine, bytes}};
    const std::uint32_t message = network_.add(cost);
    if (host_of_.size() <= message) {
      host_of_.resize(message + 1);
    }
    host_of_[message] = host;
    network_.start(message, now);
  }

  std::uint32_t steps_;
  Random random_{7};
  std::vector<std::uint32_t> sent_;     ///< messages sent, by host
  std::vector<std::uint32_t> host_of_;  ///< host by message
  FlowNetwork network_;
};

Sample ecmp(Resolve resolve) {
  EcmpSteps steps(4, resolve);
  const double begin = cpu_seconds();
  const std::uint64_t messages = steps.run();
  return {(cpu_seconds() - begin) / static_cast<double>(messages), 0,
          steps.work() / static_cast<double>(messages)};
}

/// Collectives as one activity each that loads all links of a rail-optimised cluster: into and out
/// of every rank. `concurrent` of them share the links, and start anew when they end.
Sample collective(std::uint32_t ranks, std::uint32_t concurrent, FlowNetwork::Links links) {
  constexpr int kRepetitions = 200;
  Costs costs;
  costs.links.assign(std::size_t{ranks} * 2, BytesPerSecond(50e9));
  for (std::uint32_t c = 0; c < concurrent; ++c) {
    TransferCost cost;
    for (std::uint32_t link = 0; link < 2 * ranks; ++link) {
      cost.loads.push_back({link, 1e9 + 1e6 * c});
    }
    costs.transfers.push_back(std::move(cost));
  }
  FlowNetwork network(costs, links);
  const double begin = cpu_seconds();
  for (std::uint32_t c = 0; c < concurrent; ++c) {
    network.start(c, 0);
  }
  network.settle(0);
  for (int i = 0; i < kRepetitions; ++i) {
    const Picoseconds now = network.next_end();
    network.start(network.end_next(), now);
    network.settle(now);
  }
  return {(cpu_seconds() - begin) / kRepetitions, 0};
}

}  // namespace

void add_flow_contest() {
  add_contestant("flow/ecmp/local", [] { return ecmp(Resolve::kLocal); });
  add_contestant("flow/ecmp/component", [] { return ecmp(Resolve::kComponent); });
  add_contestant("flow/collective/4k",
                 [] { return collective(4096, 1, FlowNetwork::Links::kSeparate); });
  add_contestant("flow/collective/98k",
                 [] { return collective(98'304, 4, FlowNetwork::Links::kMerged); });
  add_contestant("guide/collective/4k", [] { return Sample{1.0 / 5000, 0}; });
  add_contestant("guide/collective/98k", [] { return Sample{1.0 / 1000, 0}; });

  add_comparison({"F4", "ECMP on 4,096 hosts: whole component solved anew / locally",
                  "flow/ecmp/component", "flow/ecmp/local", Quantity::kSeconds, Limit::kAtLeast,
                  3});
  add_comparison({"F6", "collectives as one activity, 4,096 ranks: 200 us / measured",
                  "guide/collective/4k", "flow/collective/4k", Quantity::kSeconds, Limit::kAtLeast,
                  1});
  add_comparison({"F6", "same, 98,304 ranks, 4 at once, link classes: 1 ms / measured",
                  "guide/collective/98k", "flow/collective/98k", Quantity::kSeconds,
                  Limit::kAtLeast, 1});
}

}  // namespace orrery::bench
