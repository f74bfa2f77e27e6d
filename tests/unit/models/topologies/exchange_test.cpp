// SPDX-License-Identifier: Apache-2.0
// What fabrics count for an exchange against the sum over all pairs, for whole machines and for
// groups of uneven parts; and the physical links that they draw against their bundles.
#include <gtest/gtest.h>

#include <vector>

#include "sim/graph/topology_boost.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::exchange_test {
namespace {

using namespace orrery::fixtures;

void expect_counted_as_pair_by_pair(const FlowModel& network, const std::vector<int>& group) {
  const std::vector<Bundle>& bundles = network.topology().bundles();
  std::vector<double> naive(bundles.size()), counted(bundles.size());
  network.fabric().Fabric::add_exchange(group, 3.0, naive);
  network.fabric().add_exchange(group, 3.0, counted);
  double sum = 0;
  for (BundleId i = 0; i < bundles.size(); ++i) {
    EXPECT_NEAR(counted[i], naive[i], 1e-12 * (1 + naive[i])) << network.topology().bundle_name(i);
    sum += naive[i];
  }
  EXPECT_GT(sum, 0);
}

/// The whole machine, a group of uneven parts in no order, and one with a hole on every node.
void expect_counted(const SystemConfig& system, int copies) {
  const FlowModel network(system, copies);
  const int ranks = network.topology().ranks();
  expect_counted_as_pair_by_pair(network, range(0, ranks));
  std::vector<int> uneven, holes;
  for (int rank = ranks - 1; rank >= 0; --rank) {
    if ((rank * rank + rank / 3) % 5 < 2 || rank < 3) uneven.push_back(rank);
    if (rank % 4 != 1) holes.push_back(rank);
  }
  expect_counted_as_pair_by_pair(network, uneven);
  expect_counted_as_pair_by_pair(network, holes);
}

SystemConfig small_groups(SystemConfig system, const char* kind) {
  system.scale_out.kind = kind;
  system.scale_out.nodes_per_leaf_group = 2;
  system.scale_out.leaf_groups_per_pod = 2;
  return system;
}

TEST(Exchange, SystemsOfEveryScaleUpKindAreCountedAsPairByPair) {
  expect_counted(dgx_h100(), 1);
  expect_counted(dgx_2(), 1);
  expect_counted(dgx_1(), 1);
  expect_counted(unified_bus(3, 2, 3, 4), 1);
  expect_counted(tpu({4, 3, 5, 2}, 50_GBps), 1);
}

TEST(Exchange, AnOpenTorusIsCountedAsPairByPair) {
  expect_counted(tpu({4, 6}, 50_GBps, ", open_axes: [1]"), 1);
}

TEST(Exchange, DiesThatSharePackageLinksAreCountedAsPairByPair) {
  SystemConfig system = dgx_2();
  system.accelerator.dies = 2;
  system.accelerator.die_to_die.value = 1_TBps;
  expect_counted(system, 2);
}

TEST(Exchange, TreesBetweenSystemsAreCountedAsPairByPair) {
  for (const char* kind : {"rail_optimized", "clos", "multi_plane"}) {
    expect_counted(small_groups(dgx_h100(), kind), 11);
    expect_counted(small_groups(unified_bus(2, 3, 3, 4), kind), 7);
    expect_counted(small_groups(tpu({2, 4}, 50_GBps), kind), 9);
  }
}

TEST(Exchange, WithoutRelaysItIsCountedAsPairByPair) {
  SystemConfig system = small_groups(dgx_a100(), "rail_optimized");
  system.scale_out.rail_aware = false;
  expect_counted(system, 11);
}

TEST(Exchange, HashedPathsAreWalkedPairByPair) {
  SystemConfig system = small_groups(dgx_h100(), "clos");
  system.scale_out.routing = Routing::kEcmp;
  system.scale_out.flows = 4;
  expect_counted(system, 5);
}

void expect_drawn_as_bundled(const SystemConfig& system, int copies) {
  const Topology drawn = FlowModel(system, copies).drawn();
  const std::vector<Bundle>& bundles = drawn.bundles();
  std::vector<double> capacity(bundles.size());
  std::vector<int> links(bundles.size()), source(bundles.size(), -2);
  const auto& graph = drawn.graph();
  for (auto [link, end] = boost::edges(graph); link != end; ++link) {
    const BundleId bundle = graph[*link].bundle;
    capacity[bundle] += graph[*link].capacity.base();
    links[bundle] += 1;
    source[bundle] = graph[boost::source(*link, graph)].rank;
  }
  for (BundleId i = 0; i < bundles.size(); ++i) {
    EXPECT_EQ(links[i], bundles[i].links) << drawn.bundle_name(i);
    EXPECT_NEAR(capacity[i], bundles[i].capacity.base(), 1e-6 * capacity[i])
        << drawn.bundle_name(i);
    EXPECT_EQ(source[i], bundles[i].source) << drawn.bundle_name(i);
  }
}

TEST(DrawnLinks, AreThoseOfTheBundles) {
  expect_drawn_as_bundled(dgx_h100(), 3);
  expect_drawn_as_bundled(dgx_2(), 2);
  expect_drawn_as_bundled(dgx_1(), 2);
  expect_drawn_as_bundled(unified_bus(3, 2, 3, 4), 2);
  expect_drawn_as_bundled(tpu({4, 3, 2}, 50_GBps), 2);
  expect_drawn_as_bundled(with_dimensions({dimension(DimensionShape::kRing, 4, 50_GBps),
                                           dimension(DimensionShape::kMesh, 3, 20_GBps),
                                           dimension(DimensionShape::kSwitch, 2, 10_GBps)}),
                          2);
  for (const char* kind : {"rail_optimized", "clos", "multi_plane"}) {
    for (const Routing routing : {Routing::kAdaptive, Routing::kEcmp}) {
      SystemConfig system = small_groups(dgx_h100(), kind);
      system.scale_out.routing = routing;
      expect_drawn_as_bundled(system, 11);
    }
  }
}

TEST(DrawnLinks, OfHostsAreThoseOfTheirBundles) {
  SystemConfig system = unified_bus(2, 4, 3, 4);
  system.accelerator.host_link.bandwidth.value = 160_GBps;
  system.host.links = true;
  system.host.packages_per_switch = 2;
  system.host.network = 400_Gbitps;
  expect_drawn_as_bundled(system, 2);
}

TEST(DrawnLinks, OfDiesStartAtThePackage) {
  SystemConfig system = nvl72();
  system.accelerator.dies = 4;
  system.accelerator.die_to_die.value = 5_TBps;
  expect_drawn_as_bundled(system, 2);
}

}  // namespace
}  // namespace orrery::exchange_test
