// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::host_links_test {
namespace {

using namespace orrery::fixtures;

/// 4 PCIe switches with 2 GPUs each, of 16 lanes of generation 4 (NVIDIA DGX A100 architecture).
SystemConfig hosted_a100() {
  SystemConfig system = dgx_a100();
  system.accelerator.host_link.bandwidth.value = 32_GBps;
  system.host.links = true;
  system.host.packages_per_switch = 2;
  return system;
}

std::vector<std::string> host_route(const FlowModel& network, int rank, HostEnd end, bool outward) {
  Route route;
  network.fabric().append_host_route(rank, end, outward, route);
  std::vector<std::string> names;
  for (const Hop& hop : route) names.push_back(network.topology().bundle_name(hop.bundle));
  return names;
}

TEST(HostLinks, GpusBehindAPcieSwitchShareItsLinkToTheHost) {
  const FlowModel network(hosted_a100(), 2);
  EXPECT_EQ(host_route(network, 8 + 3, HostEnd::kHost, true),
            (std::vector<std::string>{"system1/node0/accelerator3->system1/node0/pcie1",
                                      "system1/node0/pcie1->host"}));
  EXPECT_EQ(host_route(network, 8 + 2, HostEnd::kHost, true).back(), "system1/node0/pcie1->host");
  EXPECT_EQ(network.topology().bundles()[link(network, "system1/node0/pcie1->host")].capacity,
            32_GBps);
}

TEST(HostLinks, OfDgxA100Are8ToFourSwitchesAnd4ToTheBoard) {
  const FlowModel network(hosted_a100(), 1);
  EXPECT_EQ(network.topology().link_count(LinkKind::kHost), 2U * (8U + 4U));
}

TEST(HostLinks, AcceleratorsOfABoardShareItsMemory) {
  SystemConfig system = hosted_a100();
  EXPECT_THROW(host_route(FlowModel(system, 1), 0, HostEnd::kMemory, true), config::KeyError);
  system.host.memory_bandwidth.value = 328_GBps;
  const FlowModel network(system, 2);
  const auto of = [&](int rank) { return host_route(network, rank, HostEnd::kMemory, true); };
  EXPECT_EQ(of(0).size(), 1U);
  EXPECT_EQ(of(0), of(7));
  EXPECT_NE(of(0), of(8));
  EXPECT_EQ(network.topology().bundles()[link(network, of(0).front())].capacity, 328_GBps);
}

TEST(HostLinks, TheWayBackIsTheSameBackwards) {
  const FlowModel network(hosted_a100(), 1);
  EXPECT_EQ(host_route(network, 0, HostEnd::kHost, false),
            (std::vector<std::string>{"host->system0/node0/pcie0",
                                      "system0/node0/pcie0->system0/node0/accelerator0"}));
}

// CloudMatrix384's VPC plane: 400 Gb/s a node, to storage and control (Zuo et al., arXiv
// 2506.12708).
TEST(HostLinks, StorageIsBehindTheNetworkOfTheHostBoard) {
  SystemConfig system = cm384();
  system.accelerator.host_link.bandwidth.value = 160_GBps;
  system.host.links = true;
  system.host.network = 400_Gbitps;
  const FlowModel network(system, 1);
  const std::vector<std::string> route = host_route(network, 17, HostEnd::kStorage, true);
  ASSERT_EQ(route.size(), 2U);
  EXPECT_EQ(route[1], "system0/node1/host->storage");
  EXPECT_EQ(network.topology().bundles()[link(network, route[1])].capacity, 50_GBps);
  EXPECT_EQ(network.topology().bundles()[link(network, route[0])].capacity, 80_GBps);  // of a die
}

TEST(HostLinks, RoutesBetweenAcceleratorsStayAsTheyAre) {
  const FlowModel with(hosted_a100(), 3), without(dgx_a100(), 3);
  for (int destination = 1; destination < 24; ++destination) {
    const Route a = with.route(0, destination), b = without.route(0, destination);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].bundle, b[i].bundle);
  }
}

TEST(HostLinks, ThatAreNotThereCannotBeTaken) {
  const FlowModel network(dgx_a100(), 1);
  Route route;
  EXPECT_THROW(network.fabric().append_host_route(0, HostEnd::kHost, true, route),
               std::logic_error);
  SystemConfig system = hosted_a100();
  system.accelerator.host_link.bandwidth.value = BytesPerSecond(0);
  EXPECT_THROW(FlowModel(system, 1), config::ConfigError);
  EXPECT_THROW(host_route(FlowModel(hosted_a100(), 1), 0, HostEnd::kStorage, true),
               config::ConfigError);
}

}  // namespace
}  // namespace orrery::host_links_test
