// SPDX-License-Identifier: Apache-2.0
// Clusters of 100,000: what is built and counted grows with the ranks, not with their pairs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/graph/topology_boost.h"
#include "sim/units/time.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::scale_test {
namespace {

using namespace orrery::fixtures;

SystemConfig cluster() {
  SystemConfig system = dgx_h100();
  system.scale_out.switch_ports = {64, 64, 96};
  return system;
}

TEST(Scale, ANetworkOf98304GpusHasFewBundlesAndNoLinkDrawn) {
  const FlowModel network(cluster(), 12288);
  const Topology& topology = network.topology();
  EXPECT_EQ(topology.ranks(), 98304);
  EXPECT_EQ(boost::num_edges(topology.graph()), 0U);
  EXPECT_LE(topology.bundles().size(), 5U * 98304U);
  EXPECT_EQ(topology.link_count(LinkKind::kScaleUp), 2U * 98304U * 18U);
}

struct Built {
  std::size_t links, names, loads, runs;
};

/// A network of so many nodes, and the loads of an all-reduce among all of its ranks.
Built built(int nodes) {
  const FlowModel network(cluster(), nodes);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllReduce, 64_MB, {range(0, 8 * nodes)}));
  EXPECT_EQ(priced.algorithm, "tree");
  const LinkLoads& loads = priced.cost.loads;
  return {network.topology().bundles().size(), network.topology().names().size(), loads.size(),
          loads.runs()};
}

// Ten times the nodes have ten times the links and names, and their loads are told in as few runs.
TEST(Scale, WhatIsBuiltGrowsWithTheNodesAndWhatIsPricedHardly) {
  const Built few = built(320), many = built(3200);
  const auto ratio = [](std::size_t a, std::size_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  EXPECT_NEAR(ratio(many.links, few.links), 10, 0.1);
  EXPECT_NEAR(ratio(many.names, few.names), 10, 0.1);
  EXPECT_NEAR(ratio(many.loads, few.loads), 10, 0.1);
  EXPECT_LE(built(2560).runs, 2 * built(256).runs);  // 20 and 2 pods of 128
}

// Of an odd number of pods each carries another load than the next, so that each is a run of its
// own. The first of the two trees leaves a block of 2^m nodes that begins at k 2^m
//   k odd:  to the parent of that node and to its child before it: 2 routes (the child behind it is
//           inside, and the middle of the block below it);
//   k even: to its parent, to both children, and from the middle of the block to the first node of
//           the next, its parent: 4 routes.
// The second tree is the first one mirrored. Of an even number of blocks an odd one is the mirror
// of an even one and every block has 2 + 4 routes; of an odd number they have 4 + 4 and 2 + 2 in
// turn.
TEST(Scale, AnOddNumberOfPodsIsARunForEachPod) {
  const Built even = built(24 * 128), odd = built(25 * 128);
  EXPECT_GE(odd.runs, 25U);
  EXPECT_LE(odd.runs, even.runs + 25);
}

// A GPU sends S/n to each of the n - 8 elsewhere; its relays even out, so every NIC carries that.
TEST(Scale, AnAllToAllOf16384LoadsEveryNicAlike) {
  const int ranks = 16384;
  const FlowModel network(cluster(), ranks / 8);
  std::vector<double> loads(network.topology().bundles().size());
  network.fabric().add_exchange(range(0, ranks), 1, loads);
  int nics = 0;
  for (BundleId i = 0; i < loads.size(); ++i) {
    const Bundle& bundle = network.topology().bundles()[i];
    if (bundle.kind != LinkKind::kScaleOut || bundle.source < 0) continue;
    EXPECT_EQ(loads[i], ranks - 8) << network.topology().bundle_name(i);
    ++nics;
  }
  EXPECT_EQ(nics, ranks);
}

// 2 (n-1)/n S over 8 NICs a node, one ring each.
TEST(Scale, ARingOf98304LoadsEveryNicWithItsShare) {
  const int ranks = 98304;
  const FlowModel network(cluster(), ranks / 8, "ring");
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllReduce, 8_GB, {range(0, ranks)}));
  const Seconds bytes = priced.isolated_time - to_seconds(priced.cost.latency);
  EXPECT_NEAR(bytes.base(), 2.0 * (ranks - 1) / ranks * 1e9 / 50e9, 1e-9);
}

}  // namespace
}  // namespace orrery::scale_test
