// SPDX-License-Identifier: Apache-2.0
// Copies between ranks and their host boards, by hand.
#include "models/transfers/flow_model.h"

#include <gtest/gtest.h>

#include "sim/config/diagnostics.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::host_copy_test {
namespace {

using namespace orrery::fixtures;

SystemConfig hosted(SystemConfig system, BytesPerSecond link, int per_switch = 0) {
  system.accelerator.host_link.bandwidth.value = link;
  system.accelerator.kernel.launch.value = 2_us;
  system.host.links = true;
  system.host.packages_per_switch = per_switch;
  return system;
}

Transfer copy(Bytes bytes, const std::vector<int>& ranks, HostCopy way = {}) {
  Transfer result = transfer(TransferKind::kSendReceive, bytes, {});
  for (const int rank : ranks) result.groups.push_back({rank});
  result.host = way;
  return result;
}

TEST(HostCopy, OverChipToChipLinksAt450GBps) {
  // NVIDIA GH200: NVLink-C2C, 900 GB/s both ways. 9 GB in 20 ms, and a launch.
  const FlowModel network(hosted(nvl72(), 450_GBps), 1);
  const auto priced = network.price(copy(9_GB, {5}));
  EXPECT_EQ(priced.algorithm, "copy");
  EXPECT_NEAR(priced.isolated_time.base(), 20e-3 + 2e-6, 1e-12);
  EXPECT_EQ(network.topology().bundle_name(*priced.bottleneck), "system0/node1/accelerator1->host");
}

TEST(HostCopy, OverPcieGen5X16At63GBps) {
  // 32 GT/s x 16 lanes x 128/130 = 63.0 GB/s: 6.3 GB in 100 ms.
  const FlowModel network(hosted(dgx_h100(), 63_GBps), 1);
  EXPECT_NEAR(network.price(copy(6.3_GB, {0})).limit.base(), 100e-3, 1e-12);
  EXPECT_NEAR(network.price(copy(6.3_GB, range(0, 8))).limit.base(), 100e-3, 1e-12);
}

TEST(HostCopy, GpusBehindAPcieSwitchShareItsLink) {
  // DGX A100: 2 GPUs a switch, PCIe 4.0 x16 of 31.5 GB/s. Two of one switch take twice the time.
  const FlowModel network(hosted(dgx_a100(), 31.5_GBps, 2), 1);
  EXPECT_NEAR(network.price(copy(3.15_GB, {2})).limit.base(), 0.1, 1e-12);
  EXPECT_NEAR(network.price(copy(3.15_GB, {2, 4})).limit.base(), 0.1, 1e-12);
  EXPECT_NEAR(network.price(copy(3.15_GB, {2, 3})).limit.base(), 0.2, 1e-12);
}

TEST(HostCopy, BothWaysTakeDifferentLinks) {
  const FlowModel network(hosted(dgx_h100(), 63_GBps), 1);
  const auto out = network.price(copy(1_GB, {0}, {.outward = true}));
  const auto in = network.price(copy(1_GB, {0}, {.outward = false}));
  EXPECT_NE(out.cost.loads.front().link, in.cost.loads.front().link);
  EXPECT_EQ(out.isolated_time, in.isolated_time);
}

TEST(HostCopy, StorageIsAsFastAsTheNetworkOfTheBoard) {
  // CloudMatrix384: 400 Gb/s a node for its 16 dies (Zuo et al., arXiv 2506.12708).
  SystemConfig system = hosted(unified_bus(2, 8, 7, 16), 302_GBps);
  system.host.network = 400_Gbitps;
  const FlowModel network(system, 1);
  const HostCopy from_storage{.end = HostEnd::kStorage, .outward = false};
  EXPECT_NEAR(network.price(copy(1_GB, range(0, 16), from_storage)).limit.base(), 16e9 / 50e9,
              1e-12);
  EXPECT_THROW(FlowModel(hosted(dgx_h100(), 63_GBps), 1).price(copy(1_GB, {0}, from_storage)),
               config::ConfigError);
}

TEST(HostCopy, NeedsTheLinksInTheNetwork) {
  EXPECT_THROW(FlowModel(dgx_h100(), 1).price(copy(1_GB, {0})), config::ConfigError);
}

}  // namespace
}  // namespace orrery::host_copy_test
