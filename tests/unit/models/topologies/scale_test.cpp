// SPDX-License-Identifier: Apache-2.0
// Clusters of 100,000: what is built and counted grows with the ranks, not with their pairs.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "sim/graph/topology_boost.h"
#include "sim/units/time.h"
#include "tests/unit/models/network/flow_checks.h"
#include "tests/unit/models/network/test_systems.h"

namespace orrery {
namespace {

using namespace orrery::testing;

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

// Ten times the nodes have ten times the links and names, and their loads are told in as few runs.
TEST(Scale, WhatIsBuiltGrowsWithTheNodesAndWhatIsPricedHardly) {
  const auto built = [](int nodes) {
    const FlowModel network(cluster(), nodes);
    const PricedTransfer priced =
        network.price(transfer(TransferKind::kAllReduce, 64_MB, {range(0, 8 * nodes)}));
    return std::array<std::size_t, 4>{network.topology().bundles().size(),
                                      network.topology().names().size(), priced.cost.loads.size(),
                                      priced.cost.loads.runs()};
  };
  const auto [few_links, few_names, few_loads, few_runs] = built(320);
  const auto [links, names, loads, runs] = built(3200);
  EXPECT_NEAR(static_cast<double>(links) / static_cast<double>(few_links), 10, 0.1);
  EXPECT_NEAR(static_cast<double>(names) / static_cast<double>(few_names), 10, 0.1);
  EXPECT_NEAR(static_cast<double>(loads) / static_cast<double>(few_loads), 10, 0.1);
  EXPECT_LE(runs, 5 * few_runs);
  EXPECT_LE(runs, 100U);
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
}  // namespace orrery
