// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/graph/topology_boost.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::unified_bus_test {
namespace {

using namespace orrery::fixtures;

class CloudMatrix : public ::testing::Test {
 protected:
  std::size_t switches(const std::string& suffix) const {
    const auto& graph = drawn_.graph();
    const auto [begin, end] = boost::vertices(graph);
    return static_cast<std::size_t>(std::count_if(begin, end, [&](auto vertex) {
      return graph[vertex].rank < 0 && drawn_.vertex_name(vertex).find(suffix) != std::string::npos;
    }));
  }
  BytesPerSecond capacity(BundleId bundle) const {
    return network_.topology().bundles()[bundle].capacity;
  }

  const FlowModel network_{cm384(), 1};
  const Topology drawn_ = network_.drawn();
};

TEST_F(CloudMatrix, Has768Dies336L1And112L2Chips) {
  EXPECT_EQ(network_.topology().ranks(), 768);
  EXPECT_EQ(switches("/l1_switch"), 336U);  // 48 nodes x 7 planes
  EXPECT_EQ(switches("/l2_switch"), 112U);  // 7 planes x 16
}

TEST_F(CloudMatrix, HasTheLinksOfThePaper) {
  // Die to L1: 768 x 7 = 5376; L1 to L2: 336 x 16 = 5376; both ways. Die to die: 384 packages, both
  // ways.
  EXPECT_EQ(network_.topology().link_count(LinkKind::kScaleUp), 2U * (5376U + 336U * 16U));
  EXPECT_EQ(network_.topology().link_count(LinkKind::kOnPackage), 768U);
}

TEST_F(CloudMatrix, EveryL1ChipIsNonBlocking) {
  // 16 dies x 28 GB/s = 448 GB/s down = 16 L2 chips x 28 GB/s up.
  const auto& graph = drawn_.graph();
  for (auto [vertex, end] = boost::vertices(graph); vertex != end; ++vertex) {
    if (drawn_.vertex_name(*vertex).find("/l1_switch") == std::string::npos) continue;
    BytesPerSecond down, up;
    for (auto [link, last] = boost::out_edges(*vertex, graph); link != last; ++link) {
      const bool to_die = graph[boost::target(*link, graph)].rank >= 0;
      (to_die ? down : up) += graph[*link].capacity;
    }
    EXPECT_EQ(down, 448_GBps);
    EXPECT_EQ(up, 448_GBps);
  }
}

TEST_F(CloudMatrix, EveryL2ChipHasOnePortPerNode) {
  const auto& graph = drawn_.graph();
  for (auto [vertex, end] = boost::vertices(graph); vertex != end; ++vertex) {
    if (drawn_.vertex_name(*vertex).find("/l2_switch") == std::string::npos) continue;
    EXPECT_EQ(boost::out_degree(*vertex, graph), 48U);
  }
}

TEST_F(CloudMatrix, DiesOfAPackageAreJoinedAt270GBps) {
  const Route route = network_.route(2, 3);
  ASSERT_EQ(route.size(), 1U);
  EXPECT_EQ(capacity(route[0].bundle), 270_GBps);
  EXPECT_NE(route[0].bundle, network_.route(3, 2)[0].bundle);
}

TEST_F(CloudMatrix, DiesOfANodeMeetInTheL1ChipsAt196GBps) {
  const Route route = network_.route(1, 2);
  ASSERT_EQ(route.size(), 2U);
  EXPECT_EQ(capacity(route[0].bundle), 196_GBps);  // 7 x 28
  EXPECT_EQ(capacity(route[1].bundle), 196_GBps);
}

TEST_F(CloudMatrix, NodesAreJoinedOverTheL2ChipsAt3136GBps) {
  const Route route = network_.route(0, 16);
  ASSERT_EQ(route.size(), 4U);
  EXPECT_EQ(capacity(route[0].bundle), 196_GBps);
  EXPECT_EQ(capacity(route[1].bundle), 3136_GBps);  // 7 x 16 x 28 = 8 packages x 392
  EXPECT_EQ(capacity(route[2].bundle), 3136_GBps);
  EXPECT_EQ(capacity(route[3].bundle), 196_GBps);
  EXPECT_EQ(network_.topology().bundles()[route[1].bundle].links, 112);
}

TEST_F(CloudMatrix, AMessageTakesTheBandwidthOfItsWay) {
  const auto time = [this](int source, int destination) {
    return network_
        .isolated_time(transfer(TransferKind::kSendReceive, 1_GB, {{source, destination}}))
        .base();
  };
  EXPECT_NEAR(time(0, 1), 1e-6 + 1.0 / 270, 1e-12);
  EXPECT_NEAR(time(0, 2), 1e-6 + 1.0 / 196, 1e-12);
  EXPECT_NEAR(time(0, 760), 1e-6 + 1.0 / 196, 1e-12);
}

TEST(UnifiedBus, PlanesThatDoNotMatchTheLinksAreAUserError) {
  SystemConfig system = cm384();
  set_fabric(system, "unified_bus", "{planes: 6, l2_switches: 16}");
  EXPECT_THROW(FlowModel(system, 1), config::ConfigError);
}

TEST(UnifiedBus, TwoDiesWithoutALinkBetweenThemAreAUserError) {
  SystemConfig system = cm384();
  system.accelerator.die_to_die.value = BytesPerSecond(0);
  EXPECT_THROW(FlowModel(system, 1), config::ConfigError);
}

}  // namespace
}  // namespace orrery::unified_bus_test
