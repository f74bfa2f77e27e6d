// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/flow_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/graph/topology_boost.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::flow_model_test {
namespace {

using namespace orrery::fixtures;

constexpr TransferKind kCollectives[] = {TransferKind::kAllReduce, TransferKind::kAllGather,
                                         TransferKind::kReduceScatter, TransferKind::kAllToAll,
                                         TransferKind::kBroadcast};

TEST(FlowModel, ARingAllReduceTakesItsClosedForm) {
  // 2 (n-1)/n S/B + 2 (n-1) alpha: 14/8 x 1.8 GB / 450 GB/s + 14 us = 7.014 ms.
  const FlowModel network(dgx_h100(), 1, "ring");
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllReduce, 1800_MB, {range(0, 8)}));
  EXPECT_EQ(priced.algorithm, "ring");
  EXPECT_EQ(priced.cost.latency, 14'000'000U);
  EXPECT_NEAR(priced.isolated_time.base(), 7.014e-3, 1e-15);
}

TEST(FlowModel, ARingAllReduceBetweenNodesIsLimitedByAllNics) {
  // 16 ranks, 2 x 15/16 S over 8 NICs of 50 GB/s: 1.875 x 1.6 GB / 400 GB/s = 7.5 ms. Chain: 30
  // hops, 4 of them between nodes: 26 us + 20 us.
  const FlowModel network(dgx_h100(), 2, "ring");
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllReduce, 1600_MB, {range(0, 16)}));
  EXPECT_NEAR(priced.isolated_time.base(), 7.5e-3 + 46e-6, 1e-12);
  ASSERT_TRUE(priced.bottleneck.has_value());
  EXPECT_EQ(network.topology().bundles()[*priced.bottleneck].kind, LinkKind::kScaleOut);
}

TEST(FlowModel, AnAllToAllOnNvl72TakesItsClosedForm) {
  // (n-1)/n S/B: 71/72 x 900 MB / 900 GB/s = 0.98611 ms, and 1 us.
  const FlowModel network(nvl72(), 1);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllToAll, 900_MB, {range(0, 72)}));
  EXPECT_EQ(priced.algorithm, "direct");
  EXPECT_NEAR(priced.isolated_time.base(), 71.0 / 72 * 1e-3 + 1e-6, 1e-15);
}

TEST(FlowModel, AnAllToAllOnCloudMatrixIsLimitedByTheLinksOfADie) {
  // 768 dies, S = 768 MB: 766 MB leave a die over UB (its twin is on the package), at 196 GB/s. A
  // node's 16 dies send 16 x 752 MB over 3136 GB/s, which is less: 3.837 ms against 3.908 ms.
  const FlowModel network(cm384(), 1);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllToAll, 768_MB, {range(0, 768)}));
  EXPECT_NEAR(priced.isolated_time.base(), 766e6 / 196e9 + 1e-6, 1e-12);
  const auto loads = dense_loads(network, priced.cost);
  EXPECT_NEAR(loads[link(network, "system0/node7/l1_switches->l2_switches")], 16 * 752e6, 1);
  EXPECT_NEAR(loads[link(network, "l2_switches->system0/node7/l1_switches")], 16 * 752e6, 1);
  EXPECT_NEAR(loads[link(network, "system0/node7/accelerator0/die1->die0")], 1e6, 1e-3);
}

TEST(FlowModel, EfficiencyScalesTheBandwidthAndNotTheLatency) {
  SystemConfig system = nvl72();
  const Transfer exchange = transfer(TransferKind::kAllToAll, 900_MB, {range(0, 72)});
  const double ideal = FlowModel(system, 1).isolated_time(exchange).base();
  system.scale_up.efficiency.value = 0.8;
  const double real = FlowModel(system, 1).isolated_time(exchange).base();
  EXPECT_NEAR(real - 1e-6, (ideal - 1e-6) / 0.8, 1e-15);
}

TEST(FlowModel, WhatEntersTheSwitchesLeavesThem) {
  // Conservation on every cut around a tier: all bytes up = all bytes down.
  for (const SystemConfig& system : {dgx_h100(), unified_bus(4, 2, 3, 4)}) {
    const FlowModel network(system, 3);
    const Topology topology = network.drawn();
    const auto& graph = topology.graph();
    const int ranks = topology.ranks();
    for (const TransferKind kind : kCollectives) {
      const auto loads =
          dense_loads(network, network.cost(transfer(kind, 1_GB, {range(0, ranks)})));
      double into = 0, out_of = 0;
      for (auto [edge, end] = boost::edges(graph); edge != end; ++edge) {
        const BundleId bundle = graph[*edge].bundle;
        const double bytes =
            loads[bundle] * (graph[*edge].capacity / topology.bundles()[bundle].capacity);
        if (graph[boost::source(*edge, graph)].rank < 0) out_of += bytes;
        if (graph[boost::target(*edge, graph)].rank < 0) into += bytes;
      }
      EXPECT_GT(into, 0);
      EXPECT_NEAR(into, out_of, 1e-9 * into) << to_string(kind);
    }
  }
}

TEST(FlowModel, EveryRouteStartsAndEndsAtItsRanks) {
  const FlowModel network(unified_bus(2, 4, 3, 8), 2);
  const Topology topology = network.drawn();
  const auto& graph = topology.graph();
  // The ends of each bundle: any of its links tells the side that is a rank.
  std::vector<int> from(topology.bundles().size(), -1), to(topology.bundles().size(), -1);
  for (auto [edge, end] = boost::edges(graph); edge != end; ++edge) {
    from[graph[*edge].bundle] = graph[boost::source(*edge, graph)].rank;
    to[graph[*edge].bundle] = graph[boost::target(*edge, graph)].rank;
  }
  for (int source = 0; source < topology.ranks(); ++source) {
    for (int destination = 0; destination < topology.ranks(); ++destination) {
      if (source == destination) continue;
      const Route route = network.route(source, destination);
      EXPECT_EQ(from[route.front().bundle], source);
      EXPECT_EQ(to[route.back().bundle], destination);
      for (std::size_t hop = 1; hop < route.size(); ++hop) {
        EXPECT_EQ(to[route[hop - 1].bundle], from[route[hop].bundle])
            << source << "->" << destination;
      }
    }
  }
}

struct Halves {
  SystemConfig system;
  int copies;
  double bisection;  // bytes per second from one half of the ranks to the other
};

// NVL72: 36 GPUs x 900 GB/s. CM384: 24 nodes x 3136 GB/s. Two DGX: 8 NICs x 50 GB/s.
std::vector<Halves> halves() {
  return {{nvl72(), 1, 36 * 900e9}, {cm384(), 1, 24 * 3136e9}, {dgx_h100(), 2, 8 * 50e9}};
}

TEST(FlowModel, TheBisectionIsNeverBeaten) {
  // In an all-to-all each of n/2 ranks sends half of its buffer to the other side.
  for (const Halves& machine : halves()) {
    const FlowModel network(machine.system, machine.copies);
    const int n = network.topology().ranks();
    const double time =
        network.isolated_time(transfer(TransferKind::kAllToAll, 1_GB, {range(0, n)})).base();
    EXPECT_GE(time, n / 2.0 * 0.5e9 / machine.bisection);
  }
}

TEST(FlowModel, PairsAcrossTheBisectionReachIt) {
  // Rank i sends to rank i + n/2, all at once: full bisection means that nothing else is in the
  // way.
  for (const Halves& machine : halves()) {
    const FlowModel network(machine.system, machine.copies);
    const int n = network.topology().ranks();
    std::vector<std::vector<int>> pairs;
    for (int rank = 0; rank < n / 2; ++rank) pairs.push_back({rank, rank + n / 2});
    const PricedTransfer priced = network.price(transfer(TransferKind::kSendReceive, 1_GB, pairs));
    const double moving = priced.isolated_time.base() - to_seconds(priced.cost.latency).base();
    EXPECT_NEAR(moving, n / 2.0 * 1e9 / machine.bisection, 1e-12);
  }
}

TEST(FlowModel, MoreLinksAreNeverSlower) {
  for (const TransferKind kind : kCollectives) {
    double last = INFINITY;
    for (const int planes : {1, 2, 4, 7}) {
      const FlowModel network(unified_bus(4, 4, planes, 8), 1);
      const double time = network.isolated_time(transfer(kind, 1_GB, {range(0, 32)})).base();
      EXPECT_LE(time, last) << to_string(kind) << " with " << planes << " planes";
      last = time;
    }
    EXPECT_LT(last, INFINITY);
  }
}

TEST(FlowModel, MoreBytesAreNeverFaster) {
  const FlowModel network(dgx_h100(), 4);
  for (const TransferKind kind : kCollectives) {
    double last = 0;
    for (double bytes = 1e3; bytes < 1e11; bytes *= 3) {
      const double time =
          network.isolated_time(transfer(kind, Bytes(bytes), {range(0, 32)})).base();
      EXPECT_GT(time, last) << to_string(kind) << " of " << bytes;
      last = time;
    }
  }
}

TEST(FlowModel, WhichRanksMeetDoesNotMatterOnNvl72) {
  const FlowModel network(nvl72(), 1);
  std::vector<int> ranks = range(0, 72);
  std::mt19937 random(7);
  for (const TransferKind kind : kCollectives) {
    const double first = network.isolated_time(transfer(kind, 1_GB, {range(0, 16)})).base();
    for (int trial = 0; trial < 20; ++trial) {
      std::shuffle(ranks.begin(), ranks.end(), random);
      const std::vector<int> group(ranks.begin(), ranks.begin() + 16);
      EXPECT_DOUBLE_EQ(network.isolated_time(transfer(kind, 1_GB, {group})).base(), first);
    }
  }
}

TEST(FlowModel, ImagesOfAFoldedTransferAddUp) {
  // One algorithm for all, as "auto" could take another for a single image.
  const FlowModel ring(dgx_h100(), 4, "ring");
  const std::vector<std::vector<int>> groups = {range(0, 4), range(4, 4), {8, 16}, {9, 17, 25}};
  for (const TransferKind kind : kCollectives) {
    std::vector<double> sum(ring.capacities().size());
    Picoseconds latency = 0;
    for (const auto& group : groups) {
      const TransferCost cost = ring.cost(transfer(kind, 1_GB, {group}));
      const auto loads = dense_loads(ring, cost);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += loads[i];
      latency = std::max(latency, cost.latency);
    }
    const TransferCost together = ring.cost(transfer(kind, 1_GB, groups));
    EXPECT_EQ(together.latency, latency);
    const auto loads = dense_loads(ring, together);
    for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(loads[i], sum[i], 1e-6);
  }
}

TEST(FlowModel, MessagesThatShareANicAddUp) {
  // Two messages into rank 8 from its rail: 2 GB into one NIC of 50 GB/s.
  const FlowModel network(dgx_h100(), 3);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kSendReceive, 1_GB, {{0, 8}, {16, 8}}));
  EXPECT_NEAR(priced.isolated_time.base(), 2.0 / 50 + 5e-6, 1e-12);
}

TEST(FlowModel, BytesCountOnceForTheWayThatTheirEnergyIsGivenFor) {
  // Rank 0 to rank 13: over NVLink to rank 5, then NIC to leaf to NIC; two links each.
  const FlowModel network(dgx_h100(), 2);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kSendReceive, 1_GB, {{0, 13}}));
  EXPECT_EQ(priced.bytes.scale_up, 1_GB);
  EXPECT_EQ(priced.bytes.scale_out, 1_GB);
}

TEST(FlowModel, LinksBetweenSwitchesOfCm384AreNoWayOfTheirOwn) {
  // Die, L1, L2, L1, die: the energy of a message has all four links.
  const FlowModel network(cm384(), 1);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kSendReceive, 1_GB, {{0, 16}}));
  EXPECT_EQ(priced.bytes.scale_up, 1_GB);
}

TEST(FlowModel, EachHopOfATorusIsAWayOfItsOwn) {
  const FlowModel network(tpu({4, 4, 4}, 45_GBps), 1);
  const auto sent = [&](int to) {
    return network.price(transfer(TransferKind::kSendReceive, 1_GB, {{0, to}})).bytes.scale_up;
  };
  EXPECT_EQ(sent(1), 1_GB);
  EXPECT_EQ(sent(2), 2_GB);
}

TEST(FlowModel, AutoTakesTheFastestAlgorithm) {
  const std::vector<int> group = range(0, 512);
  for (double bytes = 1e2; bytes < 1e11; bytes *= 10) {
    const Transfer reduction = transfer(TransferKind::kAllReduce, Bytes(bytes), {group});
    const double chosen = FlowModel(dgx_h100(), 64).isolated_time(reduction).base();
    const double ring = FlowModel(dgx_h100(), 64, "ring").isolated_time(reduction).base();
    const double tree = FlowModel(dgx_h100(), 64, "tree").isolated_time(reduction).base();
    EXPECT_EQ(chosen, std::min(ring, tree)) << bytes;
  }
}

TEST(FlowModel, TreesWinSmallAndRingsWinLarge) {
  // 4 nodes of 8: a NIC carries 2 x 31/32 S/8 in the ring and up to 2 S/8 in the trees; the ring
  // has 94 us of latency, the trees 34 us, so they meet where 2 x 1/32 S/8 / 50 GB/s = 60 us: at
  // 384 MB.
  const FlowModel network(dgx_h100(), 4);
  const auto algorithm = [&](Bytes bytes) {
    return network.price(transfer(TransferKind::kAllReduce, bytes, {range(0, 32)})).algorithm;
  };
  EXPECT_EQ(algorithm(1_KB), "tree");
  EXPECT_EQ(algorithm(350_MB), "tree");
  EXPECT_EQ(algorithm(420_MB), "ring");
}

TEST(FlowModel, AForcedAlgorithmLeavesOtherKindsToAuto) {
  const FlowModel network(nvl72(), 1, "ring");
  const auto algorithm = [&](TransferKind kind) {
    return network.price(transfer(kind, 1_MB, {range(0, 8)})).algorithm;
  };
  EXPECT_EQ(algorithm(TransferKind::kAllReduce), "ring");
  EXPECT_EQ(algorithm(TransferKind::kAllToAll), "direct");
}

TEST(FlowModel, AGroupOfOneIsFree) {
  const FlowModel network(nvl72(), 1);
  const PricedTransfer priced = network.price(transfer(TransferKind::kAllReduce, 1_GB, {{3}, {4}}));
  EXPECT_TRUE(priced.cost.loads.empty());
  EXPECT_EQ(priced.cost.latency, 0U);
  EXPECT_FALSE(priced.bottleneck.has_value());
}

TEST(FlowModel, NoBytesStillTakeTheLatency) {
  const FlowModel network(nvl72(), 1);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllToAll, Bytes(0), {range(0, 8)}));
  EXPECT_EQ(priced.cost.latency, 1'000'000U);
  EXPECT_TRUE(priced.cost.loads.empty());
}

TEST(FlowModel, WrongGroupsAreRefused) {
  const FlowModel network(dgx_h100(), 1);
  EXPECT_THROW(network.price(transfer(TransferKind::kAllReduce, 1_MB, {{0, 8}})),
               config::ConfigError);
  EXPECT_THROW(network.price(transfer(TransferKind::kAllReduce, 1_MB, {{-1, 1}})),
               config::ConfigError);
  EXPECT_THROW(network.price(transfer(TransferKind::kAllReduce, 1_MB, {{1, 2, 1}})),
               config::ConfigError);
  EXPECT_THROW(network.price(transfer(TransferKind::kAllReduce, 1_MB, {})), std::logic_error);
  EXPECT_THROW(network.price(transfer(TransferKind::kSendReceive, 1_MB, {{0, 1, 2}})),
               std::logic_error);
  EXPECT_THROW(network.route(0, 8), std::out_of_range);
}

TEST(FlowModel, AnUnknownAlgorithmIsAUserError) {
  EXPECT_THROW(FlowModel(dgx_h100(), 1, "rings"), config::ConfigError);
}

TEST(FlowModel, AMachineWithoutEfficiencyIsAUserError) {
  SystemConfig system = dgx_h100();
  system.scale_up.efficiency.value = 0;
  EXPECT_THROW(FlowModel(system, 1), config::ConfigError);
}

TEST(FlowModel, LinksAreNamedInTheOrderOfTheirCapacities) {
  const FlowModel network(dgx_h100(), 2);
  Costs costs;
  network.fill_links(costs);
  ASSERT_EQ(costs.links.size(), network.topology().bundles().size());
  EXPECT_EQ(costs.links[link(network, "system1/node0/accelerator7->nvswitches")], 450_GBps);
  EXPECT_EQ(costs.links[link(network, "system1/node0/accelerator7->group0/leaf7")], 50_GBps);
}

TEST(Registries, ListWhatThereIsWithHelp) {
  for (const auto& name : {"direct", "ring", "send_receive", "tree"}) {
    ASSERT_EQ(AlgorithmRegistry::items().count(name), 1U) << name;
    EXPECT_FALSE(AlgorithmRegistry::items().at(name).help.empty());
  }
  EXPECT_EQ(ScaleUpRegistry::items().count("nvswitch"), 1U);
  EXPECT_EQ(ScaleUpRegistry::items().count("unified_bus"), 1U);
  EXPECT_EQ(ScaleOutRegistry::items().count("rail_optimized"), 1U);
}

}  // namespace
}  // namespace orrery::flow_model_test
