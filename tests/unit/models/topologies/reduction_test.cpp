// SPDX-License-Identifier: Apache-2.0
// Switches between systems that reduce (SHARP).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/collectives/limit.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::reduction_test {
namespace {

using namespace orrery::fixtures;

SystemConfig reducing(NetworkReduction reduction = NetworkReduction::kAutomatic) {
  SystemConfig system = dgx_h100();
  system.scale_out.reduction = reduction;
  return system;
}

Transfer all_reduce(Bytes bytes, int ranks) {
  return transfer(TransferKind::kAllReduce, bytes, {range(0, ranks)});
}

TEST(NetworkReduction, ANicCarriesItsShareOnceHoweverManySystems) {
  // 800 MB over 8 rails: 100 MB up and down each NIC of 50 GB/s, 2 ms.
  for (const int systems : {2, 16, 100}) {
    const FlowModel network(reducing(), systems, "sharp");
    const auto priced = network.price(all_reduce(800_MB, 8 * systems));
    ASSERT_EQ(priced.algorithm, "sharp");
    const auto loads = dense_loads(network, priced.cost);
    for (BundleId i = 0; i < loads.size(); ++i) {
      if (!is_nic(network.topology(), i)) continue;
      EXPECT_NEAR(loads[i], 100e6, 1e-3);
    }
    EXPECT_NEAR(priced.limit.base(), std::max(2e-3, 2 * 7 / 8.0 * 800e6 / 450e9), 1e-12);
  }
}

TEST(NetworkReduction, NothingBeatsTheBytesOverTheNics) {
  // S / B of all NICs of a system, which only a reduction in switches reaches: 1 GB / 400 GB/s.
  SystemConfig system = reducing();
  system.scale_up.latency.value = system.scale_out.latency.value = Seconds(0);
  const FlowModel network(system, 8);
  const Transfer sent = all_reduce(1_GB, 64);
  const Seconds least = least_time(network.collective(sent, sent.groups[0]), port_rates(system));
  EXPECT_NEAR(least.base(), 1e9 / 400e9, 1e-12);
  for (const char* name : {"sharp", "ring", "tree", "hierarchical"}) {
    const Seconds time = FlowModel(system, 8, name).price(sent).isolated_time;
    if (std::string(name) == "sharp") {
      EXPECT_GE(time.base(), least.base());
    } else {
      EXPECT_GE(time.base(), 1.7 * least.base()) << name;
    }
  }
}

TEST(NetworkReduction, ASwitchSendsOneResultOn) {
  // 40 systems are two groups of leaves: each leaf sends its rail's 100 MB up once, and gets them.
  const FlowModel network(reducing(), 40, "sharp");
  const auto priced = network.price(all_reduce(800_MB, 320));
  const auto loads = dense_loads(network, priced.cost);
  for (const char* name : {"group0/leaf3->spines", "spines->group1/leaf3"})
    EXPECT_NEAR(loads[link(network, name)], 100e6, 1e-3) << name;
}

TEST(NetworkReduction, AutoTakesItOnlyWhereTheSystemSaysSo) {
  const Transfer sent = all_reduce(1_GB, 64);
  EXPECT_EQ(FlowModel(reducing(), 8).price(sent).algorithm, "sharp");
  EXPECT_NE(FlowModel(reducing(NetworkReduction::kAvailable), 8).price(sent).algorithm, "sharp");
  EXPECT_EQ(FlowModel(reducing(NetworkReduction::kAvailable), 8, "sharp").price(sent).algorithm,
            "sharp");
  EXPECT_NE(FlowModel(reducing(NetworkReduction::kNone), 8, "sharp").price(sent).algorithm,
            "sharp");
}

TEST(NetworkReduction, TheLimitCountsItOnlyWhereItIsUsed) {
  const SystemConfig system = reducing(NetworkReduction::kAvailable);
  const Transfer sent = all_reduce(1_GB, 64);
  const auto limit = [&](const char* algorithm) {
    const FlowModel network(system, 8, algorithm);
    return least_time(network.collective(sent, sent.groups[0]), port_rates(system)).base();
  };
  EXPECT_NEAR(limit("ring"), 2 * 7 / 8.0 * 1e9 / 400e9, 1e-12);
  EXPECT_NEAR(limit("sharp"), 1e9 / 400e9, 1e-12);
}

TEST(NetworkReduction, HasARateOfItsOwn) {
  // 100 MB a NIC at 20 of 50 GB/s: 5 ms; the bytes on the links stay.
  SystemConfig system = reducing();
  system.scale_out.reduction_bandwidth.value = 20_GBps;
  const auto priced = FlowModel(system, 4, "sharp").price(all_reduce(800_MB, 32));
  EXPECT_NEAR(priced.limit.base(), 5e-3, 1e-12);
  // Wider than the payload of a NIC it does not matter.
  system.scale_out.reduction_bandwidth.value = 60_GBps;
  const auto wide = FlowModel(system, 4, "sharp").price(all_reduce(800_MB, 32));
  EXPECT_EQ(wide.isolated_time,
            FlowModel(reducing(), 4, "sharp").price(all_reduce(800_MB, 32)).isolated_time);
}

TEST(NetworkReduction, OnFourHdrNicsReachesThePublishedRuleOfThumb) {
  // About 80 GB/s of algorithm bandwidth with 4 NICs of HDR, 20 GB/s each (NVIDIA/nccl issue 320);
  // here a system of 4 A100, so that NVLink is no limit.
  SystemConfig system = ideal_system(4, 4, 300_GBps, 12, 200_Gbitps);
  set_fabric(system, "nvswitch", "{links_per_switch: [2, 2, 2, 2, 2, 2]}");
  system.scale_out.reduction = NetworkReduction::kAvailable;
  system.scale_out.reduction_bandwidth.value = 20_GBps;
  const auto priced = FlowModel(system, 16, "sharp").price(all_reduce(4_GB, 64));
  EXPECT_NEAR((4_GB / priced.isolated_time).base(), 80e9, 0.01 * 80e9);
}

TEST(NetworkReduction, NeedsATreeThatAllRailsShare) {
  SystemConfig system = reducing();
  system.scale_out.kind = "multi_plane";
  const FlowModel network(system, 4);
  EXPECT_FALSE(network.fabric().reduces(range(0, 32)));
}

TEST(NetworkReduction, FollowsOneUplinkOfHashedRoutes) {
  SystemConfig system = reducing();
  system.scale_out.routing = Routing::kEcmp;
  const FlowModel network(system, 40, "sharp");
  const auto loads = dense_loads(network, network.price(all_reduce(800_MB, 320)).cost);
  int uplinks = 0;
  for (BundleId i = 0; i < loads.size(); ++i) {
    const std::string name = network.topology().bundle_name(i);
    if (loads[i] > 0 && name.rfind("group0/leaf", 0) == 0 &&
        name.find("spine") != std::string::npos)
      ++uplinks;
  }
  EXPECT_EQ(uplinks, 8);  // one of each leaf
}

}  // namespace
}  // namespace orrery::reduction_test
