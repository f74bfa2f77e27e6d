// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::ring_test {
namespace {

using namespace orrery::fixtures;

const CollectiveAlgorithm& ring() { return *AlgorithmRegistry::at("collective", "ring"); }

StepCount run(TransferKind kind, Bytes bytes, const std::vector<int>& group,
              const RankLayout& layout, RecordingSink& sink) {
  return ring().run({kind, bytes, group, layout}, sink);
}

TEST(Ring, EveryRankSendsAndReceivesItsShareOfAnAllReduce) {
  // 2 (n-1)/n S = 2 x 7/8 x 8 MB = 14 MB.
  RecordingSink sink;
  const StepCount steps =
      run(TransferKind::kAllReduce, 8_MB, range(0, 8), rank_layout(dgx_h100(), 1), sink);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_DOUBLE_EQ(sink.sent(rank), 14e6);
    EXPECT_DOUBLE_EQ(sink.received(rank), 14e6);
  }
  EXPECT_EQ(steps.scale_up, 14);
  EXPECT_EQ(steps.scale_out, 0);
}

TEST(Ring, AGatherTakesHalfOfAnAllReduce) {
  for (const TransferKind kind : {TransferKind::kAllGather, TransferKind::kReduceScatter}) {
    RecordingSink sink;
    const StepCount steps = run(kind, 8_MB, range(0, 8), rank_layout(dgx_h100(), 1), sink);
    for (int rank = 0; rank < 8; ++rank) EXPECT_DOUBLE_EQ(sink.sent(rank), 7e6);
    EXPECT_EQ(steps.scale_up, 7);
  }
}

TEST(Ring, ABroadcastReachesEveryoneButTheRootOnce) {
  RecordingSink sink;
  const StepCount steps = run(TransferKind::kBroadcast, 8_MB, {5, 0, 1, 2, 3, 4, 6, 7},
                              rank_layout(dgx_h100(), 1), sink);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_DOUBLE_EQ(sink.received(rank), rank == 5 ? 0 : 8e6);
  }
  EXPECT_EQ(steps.scale_up, 7);
}

TEST(Ring, RanksOfASystemAreNeighbours) {
  // Listed across the systems; every ring still leaves each of them only once.
  RecordingSink sink;
  const RankLayout layout = rank_layout(dgx_h100(), 2);
  run(TransferKind::kAllGather, 1_MB, {0, 8, 1, 9, 2, 10, 3, 11}, layout, sink);
  int crossings = 0;
  for (const RecordedFlow& flow : sink.flows) {
    crossings += layout.system(flow.source) != layout.system(flow.destination) ? 1 : 0;
  }
  EXPECT_EQ(crossings, 4 * 2);  // four rings, one way out of each of two systems
}

TEST(Ring, EachRingEntersASystemAtAnotherRank) {
  RecordingSink sink;
  const RankLayout layout = rank_layout(dgx_h100(), 4);
  run(TransferKind::kAllReduce, 1_MB, range(0, 32), layout, sink);
  std::map<int, int> entries;
  for (const RecordedFlow& flow : sink.flows) {
    if (layout.system(flow.source) != layout.system(flow.destination)) ++entries[flow.destination];
  }
  EXPECT_EQ(entries.size(), 32U);
  for (const auto& [rank, count] : entries) EXPECT_EQ(count, 1) << rank;
}

TEST(Ring, AllNicsOfANodeCarryTheSame) {
  // 2 (n-1)/n S over 8 NICs: 2 x 31/32 x 32 MB / 8 = 7.75 MB each, out and in.
  const FlowModel network(dgx_h100(), 4, "ring");
  const auto loads =
      dense_loads(network, network.cost(transfer(TransferKind::kAllReduce, 32_MB, {range(0, 32)})));
  int nics = 0;
  for (BundleId i = 0; i < loads.size(); ++i) {
    if (!is_nic(network.topology(), i)) continue;
    EXPECT_NEAR(loads[i], 7.75e6, 1e-3) << network.topology().bundle_name(i);
    ++nics;
  }
  EXPECT_EQ(nics, 64);
}

TEST(Ring, AllNicsOfARackCarryTheSame) {
  // Also with several trays, or dies, in a system: 1 GB x 2 (n-1)/n over the ports of one system.
  for (const SystemConfig& system : {nvl72(), unified_bus(3, 4, 3, 8)}) {
    const FlowModel network(system, 3, "ring");
    const int n = network.topology().ranks();
    const auto loads =
        dense_loads(network, network.cost(transfer(TransferKind::kAllReduce, 1_GB, {range(0, n)})));
    const double expected = 2e9 * (n - 1) / n / (n / 3);
    for (BundleId i = 0; i < loads.size(); ++i) {
      if (!is_nic(network.topology(), i)) continue;
      EXPECT_NEAR(loads[i], expected, 1e-3) << network.topology().bundle_name(i);
    }
  }
}

TEST(Ring, AGroupOfOneRankPerNodeUsesOneRail) {
  const FlowModel network(dgx_h100(), 4, "ring");
  const auto priced = network.price(transfer(TransferKind::kAllReduce, 32_MB, {{3, 11, 19, 27}}));
  EXPECT_EQ(priced.cost.loads.size(), 8U);  // four NICs, both ways, and nothing else
  for (const LinkLoad& load : priced.cost.loads) EXPECT_DOUBLE_EQ(load.bytes, 48e6);  // 2 x 3/4
  EXPECT_EQ(priced.scale_out_steps, 6);
  EXPECT_EQ(priced.scale_up_steps, 0);
}

TEST(Ring, OnDgx1AllLinksCarryTheSame) {
  // 2 (n-1)/n S = 2 x 7/8 x 48 MB = 84 MB out of a rank, over 6 links.
  const FlowModel network(dgx_1(), 1, "ring");
  const auto priced = network.price(transfer(TransferKind::kAllReduce, 48_MB, {range(0, 8)}));
  EXPECT_EQ(priced.cost.loads.size(), 32U);  // all wires, both ways
  for (const LinkLoad& load : priced.cost.loads)
    EXPECT_NEAR(load.bytes, 14e6 * network.topology().bundles()[load.link].links, 1e-3);
  EXPECT_EQ(priced.scale_up_steps, 14);
}

TEST(Ring, OnDgx1IsWhatAutoTakesForLargeBuffers) {
  const FlowModel network(dgx_1(), 1);
  EXPECT_EQ(network.price(transfer(TransferKind::kAllReduce, 1_GB, {range(0, 8)})).algorithm,
            "ring");
}

TEST(Ring, BusBandwidthOnDgx1IsThatOfAllItsLinks) {
  // NCCL counts on 20 of 25 GB/s a link of V100 and on 18 of 20 of P100, which has 4 of them
  // (NCCL 5067397 src/graph/topo.h): 6 x 20 = 120 GB/s, 4 x 18 = 72, and steps take time too.
  const auto bus_bandwidth = [](const SystemConfig& system) {
    const FlowModel network(system, 1, "ring");
    const Bytes bytes = 128_MB;
    const auto priced = network.price(transfer(TransferKind::kAllReduce, bytes, {range(0, 8)}));
    return (bytes * (2 * 7 / 8.0) / priced.isolated_time).base();
  };
  SystemConfig volta = dgx_1();
  volta.scale_up.efficiency.value = 0.8;
  EXPECT_NEAR(bus_bandwidth(volta), 120e9, 0.02 * 120e9);
  SystemConfig pascal = dgx_1();
  pascal.accelerator.scale_up.bandwidth.value = 80_GBps;
  pascal.accelerator.scale_up.links.value = 4;
  std::vector<WireConfig> single = wires_of(pascal);
  for (WireConfig& wire : single) wire.links = 1;
  set_wires(pascal, "mesh", single);
  pascal.scale_up.efficiency.value = 0.9;
  EXPECT_NEAR(bus_bandwidth(pascal), 72e9, 0.02 * 72e9);
}

TEST(Ring, NodesOfMeshesAreJoinedByPathsOverDirectLinks) {
  // Within each node the chunk follows one of the rings, and leaves where it would close.
  const FlowModel network(dgx_1(), 3, "ring");
  const Transfer all = transfer(TransferKind::kAllReduce, 24_MB, {range(0, 24)});
  const Collective collective = network.collective(all, all.groups[0]);
  ASSERT_EQ(collective.rings.size(), 3U);
  RecordingSink sink;
  ring().run(collective, sink);
  for (const RecordedFlow& flow : sink.flows) {
    const bool inside = flow.source / 8 == flow.destination / 8;
    EXPECT_TRUE(!inside || network.route(flow.source, flow.destination).size() == 1)
        << flow.source << " to " << flow.destination;
  }
}

TEST(Ring, TheSlowestChunkCrossesOnceForEverySystemAndLap) {
  // 4 systems of 8: 62 hops, 2 laps x 4 crossings.
  RecordingSink sink;
  const StepCount steps =
      run(TransferKind::kAllReduce, 1_MB, range(0, 32), rank_layout(dgx_h100(), 4), sink);
  EXPECT_EQ(steps.scale_out, 8);
  EXPECT_EQ(steps.scale_up, 54);
}

TEST(Ring, UnevenPartsOfAGroupStillConserveBytes) {
  // 5 ranks of one system and 3 of another: 3 rings.
  RecordingSink sink;
  run(TransferKind::kAllGather, 8_MB, {0, 1, 2, 3, 4, 8, 9, 10}, rank_layout(dgx_h100(), 2), sink);
  for (const int rank : {0, 1, 2, 3, 4, 8, 9, 10}) {
    EXPECT_NEAR(sink.sent(rank), 7e6, 1e-3);
    EXPECT_NEAR(sink.received(rank), 7e6, 1e-3);
  }
}

}  // namespace
}  // namespace orrery::ring_test
