// SPDX-License-Identifier: Apache-2.0
// Packages that share a NIC: DGX-1 has 4 EDR adapters for 8 GPUs (NVIDIA DGX-1 datasheet).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/collectives/limit.h"
#include "sim/graph/topology_boost.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::shared_nics_test {
namespace {

using namespace orrery::fixtures;

SystemConfig shared() {
  SystemConfig system = dgx_1();
  system.accelerator.scale_out.bandwidth.value = 100_Gbitps;
  system.accelerator.host_link.bandwidth.value = 15.75_GBps;
  system.scale_out.packages_per_nic = 2;
  return system;
}

std::vector<std::string> names(const FlowModel& network, int source, int destination) {
  std::vector<std::string> names;
  for (const Hop& hop : network.route(source, destination))
    names.push_back(network.topology().bundle_name(hop.bundle));
  return names;
}

/// Between a NIC and its leaf, one way.
bool is_cable(const Topology& topology, BundleId bundle) {
  return topology.bundles()[bundle].kind == LinkKind::kScaleOut &&
         topology.bundle_name(bundle).find("/nic") != std::string::npos;
}

TEST(SharedNics, AMessageCrossesTheSlotsAndNicsOfBothEnds) {
  const FlowModel network(shared(), 2);
  EXPECT_EQ(
      names(network, 3, 8 + 3),
      (std::vector<std::string>{
          "system0/node0/accelerator3->system0/node0/nic1", "system0/node0/nic1->group0/leaf1",
          "group0/leaf1->system1/node0/nic1", "system1/node0/nic1->system1/node0/accelerator3"}));
  EXPECT_EQ(network.fabric().hops(3, 8 + 3), 4);
}

TEST(SharedNics, OneRankAloneHasTheWholeNic) {
  const FlowModel network(shared(), 2);
  const auto alone = network.price(transfer(TransferKind::kSendReceive, 1_GB, {{2, 8 + 2}}));
  EXPECT_NEAR(alone.limit.base(), 1e9 / 12.5e9, 1e-12);
  const auto both =
      network.price(transfer(TransferKind::kSendReceive, 1_GB, {{2, 8 + 2}, {3, 8 + 3}}));
  EXPECT_NEAR(both.limit.base(), 2e9 / 12.5e9, 1e-12);
  const auto apart =
      network.price(transfer(TransferKind::kSendReceive, 1_GB, {{2, 8 + 2}, {4, 8 + 4}}));
  EXPECT_NEAR(apart.limit.base(), 1e9 / 12.5e9, 1e-12);
}

TEST(SharedNics, ARingCarriesTheSameOverAllFour) {
  // 2 (n-1)/n S = 2 x 15/16 x 16 MB over 4 NICs: 7.5 MB each way.
  const FlowModel network(shared(), 2, "ring");
  const auto loads =
      dense_loads(network, network.cost(transfer(TransferKind::kAllReduce, 16_MB, {range(0, 16)})));
  int nics = 0;
  for (BundleId i = 0; i < loads.size(); ++i) {
    if (!is_cable(network.topology(), i)) continue;
    EXPECT_NEAR(loads[i], 7.5e6, 1e-3) << network.topology().bundle_name(i);
    ++nics;
  }
  EXPECT_EQ(nics, 2 * 2 * 4);
}

TEST(SharedNics, TheCountOfAnExchangeIsThatOfItsRoutes) {
  for (const char* kind : {"rail_optimized", "clos"}) {
    SystemConfig system = shared();
    system.scale_out.kind = kind;
    system.scale_out.nodes_per_leaf_group = 2;
    const FlowModel network(system, 5);
    const std::vector<int> group = {0, 3, 4, 7, 9, 10, 17, 24, 25, 26, 39};
    std::vector<double> counted(network.capacities().size()), walked(counted);
    network.fabric().add_exchange(group, 1e6, counted);
    for (const int source : group) {
      for (const int destination : group) {
        if (source == destination) continue;
        for (const Hop& hop : network.route(source, destination))
          walked[hop.bundle] += 1e6 * hop.share;
      }
    }
    for (BundleId i = 0; i < counted.size(); ++i)
      EXPECT_NEAR(counted[i], walked[i], 1e-3) << kind << network.topology().bundle_name(i);
  }
}

TEST(SharedNics, WhatIsDrawnAreEightSlotsAndFourCables) {
  const FlowModel network(shared(), 2);
  const Topology drawn = network.drawn();
  int slots = 0, cables = 0;
  const auto [begin, end] = boost::edges(drawn.graph());
  for (auto edge = begin; edge != end; ++edge) {
    const BundleId bundle = drawn.graph()[*edge].bundle;
    slots += drawn.bundles()[bundle].kind == LinkKind::kHost ? 1 : 0;
    cables += is_cable(drawn, bundle) ? 1 : 0;
  }
  EXPECT_EQ(slots, 2 * 2 * 8);
  EXPECT_EQ(cables, 2 * 2 * 4);
}

TEST(SharedNics, TheLimitOfASystemIsThatOfItsNics) {
  EXPECT_EQ(port_rates(shared()).system, 50_GBps);
}

TEST(SharedNics, DiesOfAPackageShareItsNicToo) {
  SystemConfig system = unified_bus(2, 4, 3, 8);
  system.scale_out.packages_per_nic = 2;
  const FlowModel network(system, 2);
  EXPECT_EQ(names(network, 3, 16 + 3)[1], "system0/node0/nic0->group0/leaf0");
  EXPECT_EQ(names(network, 4, 16 + 4)[1], "system0/node0/nic1->group0/leaf1");
}

}  // namespace
}  // namespace orrery::shared_nics_test
