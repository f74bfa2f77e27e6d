// SPDX-License-Identifier: Apache-2.0
// What transfers take of the SMs and of the memory of their ranks.
#include <gtest/gtest.h>

#include "models/transfers/flow_model.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::device_load_test {
namespace {

using namespace orrery::fixtures;

Transfer message(Bytes bytes, int to) {
  return transfer(TransferKind::kSendReceive, bytes, {{0, to}});
}

double memory_bytes(const PricedTransfer& priced) {
  return static_cast<double>(priced.cost.device.memory) * priced.isolated_time.base();
}

TEST(DeviceLoads, WhatLeavesIsReadAndWhatArrivesIsWritten) {
  // A ring all-reduce sends and receives 2 (n-1)/n S each; an all-gather and an all-to-all half.
  const FlowModel network(dgx_h100(), 1, "ring");
  const auto moved = [&](TransferKind kind) {
    return network.price(transfer(kind, 800_MB, {range(0, 8)})).memory.base();
  };
  EXPECT_NEAR(moved(TransferKind::kAllReduce), 4 * 700e6, 1);
  EXPECT_NEAR(moved(TransferKind::kAllGather), 2 * 700e6, 1);
  EXPECT_NEAR(moved(TransferKind::kReduceScatter), 2 * 700e6, 1);
  EXPECT_NEAR(moved(TransferKind::kAllToAll), 2 * 700e6, 1);
  EXPECT_NEAR(network.price(message(800_MB, 1)).memory.base(), 800e6, 1);
}

TEST(DeviceLoads, SwitchesThatReduceTakeLessOfTheMemory) {
  const FlowModel network(with_nccl(dgx_h100()), 1);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllReduce, 800_MB, {range(0, 8)}));
  ASSERT_EQ(priced.algorithm, "nvls");
  // Read and written once, and a rank's share once more on its way between the two halves.
  EXPECT_NEAR(priced.memory.base(), 2 * 9.0 / 8 * 800e6, 1);
}

TEST(DeviceLoads, TheRateMovesTheBytesInTheTimeOfTheTransfer) {
  const FlowModel network(with_nccl(dgx_h100()), 2);
  for (const int ranks : {2, 8, 16}) {
    const PricedTransfer priced =
        network.price(transfer(TransferKind::kAllReduce, 800_MB, {range(0, ranks)}));
    EXPECT_NEAR(memory_bytes(priced) / priced.memory.base(), 1, 1e-9) << ranks;
  }
}

TEST(DeviceLoads, EachChannelHoldsAnSm) {
  const SystemConfig system = with_nccl(dgx_h100());
  const auto units = [&](const Transfer& t, const char* algorithm) {
    return FlowModel(system, 2, algorithm).price(t).cost.device.units;
  };
  const Transfer large = transfer(TransferKind::kAllReduce, 800_MB, {range(0, 8)});
  EXPECT_EQ(units(large, "ring"), 24);
  EXPECT_EQ(units(large, "nvls"), 16);
  EXPECT_EQ(units(large, "one_shot"), 24);
  EXPECT_EQ(units(message(800_MB, 1), "auto"), 24);
  EXPECT_EQ(units(message(800_MB, 8), "auto"), 2);  // a channel or two keep a NIC busy
}

TEST(DeviceLoads, FewBytesTakeFewChannels) {
  const FlowModel network(with_nccl(dgx_h100()), 1, "ring", "simple");
  const auto units = [&](Bytes bytes) {
    return network.price(transfer(TransferKind::kAllReduce, bytes, {range(0, 8)}))
        .cost.device.units;
  };
  EXPECT_EQ(units(1_KiB), 1);
  EXPECT_EQ(units(128_KiB), 4);  // of 32 KiB each
  EXPECT_EQ(units(8_MiB), 24);
}

TEST(DeviceLoads, EnginesTakeNoSm) {
  // Without a library of kernels.
  const PricedTransfer priced =
      FlowModel(dgx_h100(), 1).price(transfer(TransferKind::kAllReduce, 800_MB, {range(0, 8)}));
  EXPECT_EQ(priced.cost.device.units, 0);
  EXPECT_GT(priced.cost.device.memory, 0);
}

TEST(DeviceLoads, ARankAloneTakesNothing) {
  const PricedTransfer priced =
      FlowModel(with_nccl(dgx_h100()), 1)
          .price(transfer(TransferKind::kAllReduce, 800_MB, {{0}, {1}, {2}}));
  EXPECT_TRUE(priced.cost.device.none());
}

TEST(DeviceLoads, FoldedImagesTakeWhatOneDoes) {
  const FlowModel network(with_nccl(dgx_h100()), 1, "ring");
  const auto load = [&](std::vector<std::vector<int>> groups) {
    return network.price(transfer(TransferKind::kAllReduce, 800_MB, std::move(groups))).cost.device;
  };
  EXPECT_EQ(load({range(0, 4)}), load({range(0, 4), range(4, 4)}));
}

TEST(DeviceLoads, DispatchHoldsTheSmsOfItsKernels) {
  SystemConfig system = with_nccl(dgx_h100());
  ExpertExchangeConfig kernels;
  kernels.dispatch_start.value = 10_us;
  kernels.normal_efficiency.value = kernels.low_latency_efficiency.value = 0.8;
  kernels.scale_out_efficiency.value = 0.9;
  kernels.units.value = 12;
  system.expert_exchange = kernels;
  Transfer dispatch = transfer(TransferKind::kDispatch, 8_MB, {range(0, 8)});
  dispatch.routing =
      ExpertRouting{.experts = 256, .top_k = 8, .router = ExpertRouting::Router::kPerfect};
  EXPECT_EQ(FlowModel(system, 1).price(dispatch).cost.device.units, 12);
}

}  // namespace
}  // namespace orrery::device_load_test
