// SPDX-License-Identifier: Apache-2.0
// No algorithm beats what the ports allow, and those that are optimal reach it.
#include "models/collectives/limit.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::limit_test {
namespace {

using namespace orrery::fixtures;

constexpr TransferKind kKinds[] = {
    TransferKind::kAllReduce, TransferKind::kAllGather, TransferKind::kReduceScatter,
    TransferKind::kAllToAll,  TransferKind::kBroadcast, TransferKind::kReduce,
    TransferKind::kGather,    TransferKind::kScatter,   TransferKind::kBarrier};

/// Links at line rate and no latency: the time is that of the bytes.
SystemConfig without_latency(SystemConfig system) {
  system.scale_up.latency.value = Seconds(0);
  system.scale_out.latency.value = Seconds(0);
  return system;
}

SystemConfig reducing(SystemConfig system) {
  system.scale_up.switch_reduction = true;
  return system;
}

struct Timed {
  Seconds time, least;
  bool served = false;
};

Timed timed(const SystemConfig& system, int copies, const std::string& algorithm, TransferKind kind,
            const std::vector<int>& group) {
  const SystemConfig ideal = without_latency(system);
  const FlowModel network(ideal, copies, algorithm);
  const Bytes bytes = kind == TransferKind::kBarrier ? 0_B : 1_GB;
  const Transfer sent = transfer(kind, bytes, {group});
  const Collective collective = network.collective(sent, sent.groups[0]);
  if (!AlgorithmRegistry::at("collective", algorithm)->serves(collective)) return {};
  return {network.price(sent).isolated_time, least_time(collective, port_rates(ideal)), true};
}

TEST(Limit, NoAlgorithmBeatsIt) {
  int served = 0;
  for (const auto& [name, item] : AlgorithmRegistry::items()) {
    for (const TransferKind kind : kKinds) {
      for (const SystemConfig& system :
           {dgx_h100(), reducing(dgx_h100()), dgx_a100(), unified_bus(3, 4, 3, 8)}) {
        for (const int copies : {1, 2, 3}) {
          const int ranks = system.ranks() * copies;
          for (const auto& group : {range(0, ranks), range(1, ranks - 2), range(ranks - 3, 3)}) {
            const Timed one = timed(system, copies, name, kind, group);
            if (!one.served) continue;
            ++served;
            EXPECT_GE(one.time.base(), one.least.base() * (1 - 1e-12))
                << name << ' ' << to_string(kind) << ' ' << copies << " x " << system.ranks();
          }
        }
      }
    }
  }
  EXPECT_GT(served, 500);
}

TEST(Limit, AnAllReduceTakesTwiceItsShareUnlessSwitchesReduce) {
  const std::vector<int> group = range(0, 8);
  // 2 x 7/8 x 1 GB / 450 GB/s, and 1 GB / 450 GB/s.
  const Timed plain = timed(dgx_h100(), 1, "ring", TransferKind::kAllReduce, group);
  EXPECT_DOUBLE_EQ(plain.least.base(), 1.75e9 / 450e9);
  const Timed nvls = timed(reducing(dgx_h100()), 1, "nvls", TransferKind::kAllReduce, group);
  EXPECT_DOUBLE_EQ(nvls.least.base(), 1e9 / 450e9);
  EXPECT_NEAR(nvls.time.base(), 1.125e9 / 450e9, 1e-12);  // its own part crosses too
  EXPECT_LT(nvls.time, plain.time);
}

TEST(Limit, OptimalAlgorithmsReachIt) {
  const auto reaches = [](const SystemConfig& system, int copies, const char* algorithm,
                          TransferKind kind) {
    const Timed one = timed(system, copies, algorithm, kind, range(0, system.ranks() * copies));
    ASSERT_TRUE(one.served) << algorithm;
    EXPECT_NEAR(one.least / one.time, 1, 1e-9) << algorithm << ' ' << to_string(kind);
  };
  for (const TransferKind kind :
       {TransferKind::kAllReduce, TransferKind::kAllGather, TransferKind::kReduceScatter}) {
    for (const char* algorithm : {"ring", "direct", "recursive"})
      reaches(dgx_h100(), 1, algorithm, kind);
    reaches(dgx_a100(), 4, "hierarchical", kind);  // its NICs limit
  }
  reaches(nvl72(), 1, "pairwise", TransferKind::kAllToAll);
  reaches(dgx_a100(), 4, "hierarchical", TransferKind::kAllToAll);
  reaches(dgx_h100(), 1, "ring", TransferKind::kBroadcast);
  reaches(dgx_h100(), 1, "ring", TransferKind::kReduce);
  reaches(dgx_h100(), 1, "direct", TransferKind::kGather);
  reaches(dgx_h100(), 1, "binomial", TransferKind::kScatter);
}

TEST(Limit, ATorusReachesItOnAllItsLinks) {
  SystemConfig system = ideal_system(64, 4, 600_GBps, 6, 0_GBps);  // 100 GB/s a link
  set_fabric(system, "torus", "{torus: [4, 4, 4]}");
  for (const TransferKind kind :
       {TransferKind::kAllReduce, TransferKind::kAllGather, TransferKind::kReduceScatter}) {
    const Timed one = timed(system, 1, "torus", kind, range(0, 64));
    ASSERT_TRUE(one.served);
    EXPECT_NEAR(one.least / one.time, 1, 1e-9) << to_string(kind);
    const Timed part = timed(system, 1, "torus", kind, range(0, 16));
    EXPECT_FALSE(part.served);
  }
}

TEST(Limit, ARingThroughASwitchIsAsFastAsOnDirectLinks) {
  for (const SystemConfig& system : {dgx_a100(), dgx_h100(), nvl72()}) {
    const int n = system.ranks();
    const FlowModel network(system, 1, "ring");
    const double direct_links =
        2.0 * (n - 1) *
        (kScaleUpLatency.base() + 1e9 / n / system.accelerator.scale_up.bandwidth.value.base());
    const Transfer sent = transfer(TransferKind::kAllReduce, 1_GB, {range(0, n)});
    EXPECT_LE(network.isolated_time(sent).base(), 1.05 * direct_links);
    EXPECT_GE(network.isolated_time(sent).base(), 0.999 * direct_links);
  }
}

TEST(Limit, NicsOfASystemLimitWhatLeavesIt) {
  // 8 NICs of 50 GB/s. An all_to_all of 1 GB a rank over 4 systems: 8 x 24/32 GB leave each.
  const Timed one = timed(dgx_h100(), 4, "direct", TransferKind::kAllToAll, range(0, 32));
  EXPECT_DOUBLE_EQ(one.least.base(), 6e9 / 400e9);
}

}  // namespace
}  // namespace orrery::limit_test
