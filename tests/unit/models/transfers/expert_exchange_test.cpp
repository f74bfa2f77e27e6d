// SPDX-License-Identifier: Apache-2.0
// Dispatch and combine by the kernels of a system, against equations by hand.
#include "models/transfers/expert_exchange.h"

#include <gtest/gtest.h>

#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::expert_exchange_test {
namespace {

using namespace orrery::fixtures;
using Mode = ExpertRouting::Mode;

/// Fabrics at half their line rate for collectives, so that a mix-up of efficiencies shows.
SystemConfig with_kernels() {
  SystemConfig system = dgx_h100();
  system.scale_up.efficiency.value = 0.5;
  system.scale_out.efficiency.value = 0.5;
  ExpertExchangeConfig kernels;
  kernels.dispatch_start.value = 10_us;
  kernels.dispatch_floor.value = 5_us;
  kernels.combine_start.value = 20_us;
  kernels.normal_efficiency.value = 0.6;
  kernels.low_latency_efficiency.value = 0.8;
  kernels.scale_out_efficiency.value = 0.9;
  system.expert_exchange = kernels;
  return system;
}

Transfer exchange(TransferKind kind, Bytes bytes, int ranks, Mode mode) {
  Transfer result = transfer(kind, bytes, {range(0, ranks)});
  result.routing = ExpertRouting{
      .experts = 256, .top_k = 8, .router = ExpertRouting::Router::kPerfect, .mode = mode};
  return result;
}

double microseconds(const FlowModel& network, const Transfer& transfer) {
  return network.price(transfer).isolated_time.base() * 1e6;
}

TEST(ExpertExchange, TimeIsStartAndBytesAtTheRateOfTheKernel) {
  const FlowModel network(with_kernels(), 1);
  // 7 of 8 ranks are others; 450 GB/s.
  EXPECT_NEAR(microseconds(network, exchange(TransferKind::kDispatch, 8_MB, 8, Mode::kNormal)),
              10 + 7 / (0.45 * 0.6), 1e-6);
  EXPECT_NEAR(microseconds(network, exchange(TransferKind::kDispatch, 8_MB, 8, Mode::kLowLatency)),
              10 + 7 / (0.45 * 0.8), 1e-6);
  EXPECT_NEAR(microseconds(network, exchange(TransferKind::kCombine, 8_MB, 8, Mode::kLowLatency)),
              20 + 7 / (0.45 * 0.8), 1e-6);
}

TEST(ExpertExchange, WhereAHookReceivesKernelsStartIt) {
  const FlowModel network(with_kernels(), 1);
  Transfer hooked = exchange(TransferKind::kDispatch, 8_MB, 8, Mode::kLowLatency);
  hooked.routing->hook = true;
  EXPECT_NEAR(microseconds(network, hooked), 7 / (0.45 * 0.8), 1e-6);
}

TEST(ExpertExchange, FewTokensTakeTheFloor) {
  const FlowModel network(with_kernels(), 1);
  const Transfer few = exchange(TransferKind::kDispatch, 8_KB, 8, Mode::kNormal);
  EXPECT_NEAR(microseconds(network, few), 15, 1e-6);
  EXPECT_FALSE(network.price(few).bottleneck);
}

TEST(ExpertExchange, CrossingNodesCostsOnceAndOnlyThere) {
  SystemConfig system = with_kernels();
  const Transfer inside = exchange(TransferKind::kDispatch, 16_MB, 8, Mode::kLowLatency);
  const Transfer across = exchange(TransferKind::kCombine, 16_MB, 16, Mode::kLowLatency);
  const FlowModel without(system, 2);
  system.expert_exchange->crossing.value = 7_us;
  const FlowModel with(system, 2);
  EXPECT_EQ(microseconds(with, inside), microseconds(without, inside));
  EXPECT_NEAR(microseconds(with, across), microseconds(without, across) + 7, 1e-6);
}

TEST(ExpertExchange, NicsLimitWhereTheyTakeLonger) {
  const FlowModel network(with_kernels(), 2);
  const Transfer transfer = exchange(TransferKind::kDispatch, 16_MB, 16, Mode::kLowLatency);
  // Half of the copies leave the node, at 50 GB/s.
  EXPECT_NEAR(microseconds(network, transfer), 10 + 8 / (0.05 * 0.9), 1e-6);
  const auto bottleneck = network.price(transfer).bottleneck;
  ASSERT_TRUE(bottleneck);
  EXPECT_EQ(network.topology().bundles()[*bottleneck].kind, LinkKind::kScaleOut);
}

TEST(ExpertExchange, ReplayedLoadsTakeAsLongAsThePriceSays) {
  const FlowModel network(with_kernels(), 2);
  const PricedTransfer priced =
      network.price(exchange(TransferKind::kCombine, 16_MB, 16, Mode::kNormal));
  Seconds slowest;
  for (const LinkLoad& load : priced.cost.loads)
    slowest = std::max(slowest, Bytes(load.bytes) / network.capacities()[load.link]);
  EXPECT_NEAR((to_seconds(priced.cost.latency) + slowest).base(), priced.isolated_time.base(),
              1e-12);
}

TEST(ExpertExchange, EnergyCountsThePayloadAlone) {
  SystemConfig plain = with_kernels();
  plain.expert_exchange.reset();
  const Transfer transfer = exchange(TransferKind::kDispatch, 16_MB, 16, Mode::kNormal);
  EXPECT_EQ(FlowModel(with_kernels(), 2).price(transfer).bytes.scale_up.base(),
            FlowModel(plain, 2).price(transfer).bytes.scale_up.base());
}

TEST(ExpertExchange, WithoutKernelsItCostsTheFabric) {
  SystemConfig plain = with_kernels();
  plain.expert_exchange.reset();
  const FlowModel network(plain, 1);
  const Transfer transfer = exchange(TransferKind::kDispatch, 8_MB, 8, Mode::kNormal);
  EXPECT_NEAR(microseconds(network, transfer), 1 + 7 / (0.45 * 0.5), 1e-6);
}

TEST(ExpertExchange, TheHeaviestRankLimits) {
  const FlowModel network(with_kernels(), 1);
  Transfer transfer = exchange(TransferKind::kDispatch, 8_MB, 8, Mode::kLowLatency);
  transfer.routing->skew = 2;
  EXPECT_NEAR(microseconds(network, transfer), 10 + 14 / (0.45 * 0.8), 1e-6);
  const auto bottleneck = network.price(transfer).bottleneck;
  ASSERT_TRUE(bottleneck);
  EXPECT_EQ(network.topology().bundle_name(*bottleneck), "nvswitches->system0/node0/accelerator0");
}

}  // namespace
}  // namespace orrery::expert_exchange_test
