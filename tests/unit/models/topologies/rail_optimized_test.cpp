// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::rail_optimized_test {
namespace {

using namespace orrery::fixtures;

std::vector<std::string> route_names(const FlowModel& network, int source, int destination) {
  std::vector<std::string> names;
  for (const Hop& hop : network.route(source, destination)) {
    names.push_back(network.topology().bundle_name(hop.bundle));
  }
  return names;
}

TEST(RailOptimized, OneSystemHasNoScaleOutLinks) {
  const FlowModel network(dgx_h100(), 1);
  EXPECT_EQ(network.topology().link_count(LinkKind::kScaleOut), 0U);
}

TEST(RailOptimized, AHundredNodesHaveFourGroupsOfEightLeaves) {
  // 100 nodes in groups of 32: 32, 32, 32, 4. Links: 800 NICs and 32 from each of 4 x 8 leaves to
  // the spines, both ways.
  const FlowModel network(dgx_h100(), 100);
  EXPECT_EQ(network.topology().link_count(LinkKind::kScaleOut), 2U * (800U + 32U * 32U));
  const std::size_t up = link(network, "group1/leaf5->spines");
  EXPECT_EQ(network.topology().bundles()[up].capacity, 1600_GBps);  // 32 x 50: non-blocking
}

TEST(RailOptimized, TheSameRailOfAGroupIsOneLeafAway) {
  const FlowModel network(dgx_h100(), 100);
  EXPECT_EQ(route_names(network, 3, 8 + 3),
            (std::vector<std::string>{"system0/node0/accelerator3->group0/leaf3",
                                      "group0/leaf3->system1/node0/accelerator3"}));
}

TEST(RailOptimized, AnotherRailIsReachedOverTheScaleUpFabricFirst) {
  const FlowModel network(dgx_h100(), 100);
  EXPECT_EQ(
      route_names(network, 3, 8 + 5),
      (std::vector<std::string>{
          "system0/node0/accelerator3->nvswitches", "nvswitches->system0/node0/accelerator5",
          "system0/node0/accelerator5->group0/leaf5", "group0/leaf5->system1/node0/accelerator5"}));
}

TEST(RailOptimized, AnotherGroupIsReachedOverTheSpine) {
  const FlowModel network(dgx_h100(), 100);
  EXPECT_EQ(route_names(network, 3, 99 * 8 + 3),
            (std::vector<std::string>{"system0/node0/accelerator3->group0/leaf3",
                                      "group0/leaf3->spines", "spines->group3/leaf3",
                                      "group3/leaf3->system99/node0/accelerator3"}));
}

TEST(RailOptimized, TheRailsOfARackAreItsTrayPositions) {
  // NVL72: trays of 4, so GPU 70 is on rail 2 of tray 17 and its rail's owner in tray 0 is GPU 2.
  const FlowModel network(nvl72(), 2);
  const std::vector<std::string> names = route_names(network, 0, 72 + 70);
  ASSERT_GE(names.size(), 3U);
  EXPECT_EQ(names[1], "nvswitches->system0/node0/accelerator2");
  EXPECT_EQ(names[2], "system0/node0/accelerator2->group0/leaf2");
}

TEST(RailOptimized, RacksShareLeavesByTheGroup) {
  // 16 racks in groups of 8: 4 leaves each, and 8 x 18 trays x 50 GB/s from a leaf to the spine.
  SystemConfig system = nvl72();
  system.scale_out.nodes_per_leaf_group = 8;
  const FlowModel network(system, 16);
  EXPECT_EQ(network.topology().bundles()[link(network, "group1/leaf3->spines")].capacity,
            7200_GBps);
  EXPECT_EQ(network.route(0, 7 * 72).size(), 2U);
  EXPECT_EQ(network.route(0, 8 * 72).size(), 4U);
}

TEST(RailOptimized, DiesShareTheNicOfTheirPackageEqually) {
  // CloudMatrix384: RoCE of 400 Gb/s per package, 200 Gb/s = 25 GB/s per die.
  const FlowModel network(unified_bus(2, 8, 7, 16), 2);
  const Route route = network.route(5, 32 + 5);
  ASSERT_EQ(route.size(), 2U);
  EXPECT_EQ(network.topology().bundles()[route[0].bundle].capacity, 25_GBps);
  EXPECT_EQ(network.topology().bundle_name(route[0].bundle),
            "system0/node0/accelerator2/die1->group0/leaf2");
}

TEST(RailOptimized, AnAllToAllLoadsAllRailsAlike) {
  // 100 nodes: a rank sends S/800 to each of 792 ranks elsewhere; over the 8 ranks of a node and
  // the 8 rails every NIC carries 8 x 99 x S/800 = 0.99 S, out and in.
  const FlowModel network(dgx_h100(), 100);
  const auto loads = dense_loads(
      network, network.cost(transfer(TransferKind::kAllToAll, 800_MB, {range(0, 800)})));
  for (int node = 0; node < 100; ++node) {
    for (int gpu = 0; gpu < 8; ++gpu) {
      const std::string name =
          "system" + std::to_string(node) + "/node0/accelerator" + std::to_string(gpu);
      const std::string leaf = "group" + std::to_string(node / 32) + "/leaf" + std::to_string(gpu);
      EXPECT_NEAR(loads[link(network, name + "->" + leaf)], 792e6, 1);
      EXPECT_NEAR(loads[link(network, leaf + "->" + name)], 792e6, 1);
    }
  }
}

TEST(RailOptimized, AnAllToAllOfDiesLoadsAllRailsAlike) {
  // Two supernodes of 2 boards of 4 packages of 2 dies: 16 of 32 ranks are elsewhere, so a port
  // carries S/2.
  const FlowModel network(unified_bus(2, 4, 3, 8), 2);
  const auto loads =
      dense_loads(network, network.cost(transfer(TransferKind::kAllToAll, 32_MB, {range(0, 32)})));
  int ports = 0;
  for (BundleId i = 0; i < loads.size(); ++i) {
    if (!is_nic(network.topology(), i)) continue;
    EXPECT_NEAR(loads[i], 16e6, 1) << network.topology().bundle_name(i);
    ++ports;
  }
  EXPECT_EQ(ports, 64);
}

TEST(RailOptimized, SeveralSystemsWithoutNicsAreAUserError) {
  SystemConfig system = dgx_h100();
  system.accelerator.scale_out.bandwidth.value = BytesPerSecond(0);
  EXPECT_NO_THROW(FlowModel(system, 1));
  EXPECT_THROW(FlowModel(system, 2), config::ConfigError);
}

}  // namespace
}  // namespace orrery::rail_optimized_test
