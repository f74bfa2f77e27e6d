// SPDX-License-Identifier: Apache-2.0
// Large buffers that a library moves in another way than small ones, against equations by hand.
#include "models/transfers/bulk.h"

#include <gtest/gtest.h>

#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::bulk_test {
namespace {

using namespace orrery::fixtures;

/// Small buffers at half the line rate, large ones at 0.9 and 0.75 of it.
SystemConfig with_bulk() {
  SystemConfig system = dgx_h100();
  system.scale_up.efficiency.value = 0.5;
  system.scale_up.launch.value = 4_us;
  BulkConfig bulk;
  bulk.from = 1_MB;
  bulk.start.value = 30_us;
  bulk.peer.value = 2_us;
  bulk.efficiency.value = 0.9;
  bulk.sum_efficiency.value = 0.75;
  system.scale_up.bulk = bulk;
  return system;
}

double microseconds(const FlowModel& network, TransferKind kind, Bytes bytes, int ranks = 8) {
  return network.price(transfer(kind, bytes, {range(0, ranks)})).isolated_time.base() * 1e6;
}

TEST(BulkBuffers, PayTheirStartTheirPeersAndTheirRate) {
  const FlowModel network(with_bulk(), 1, "direct");
  // One step of 1 us; 7 of 8 shares of 8 MB over 450 GB/s.
  EXPECT_NEAR(microseconds(network, TransferKind::kAllGather, 8_MB),
              30 + 7 * 2 + 1 + 7 / (0.45 * 0.9), 1e-6);
}

TEST(BulkBuffers, SumOnArrivalAtTheirOwnRate) {
  const FlowModel direct(with_bulk(), 1, "direct");
  EXPECT_NEAR(microseconds(direct, TransferKind::kReduceScatter, 8_MB),
              30 + 7 * 2 + 1 + 7 / (0.45 * 0.75), 1e-6);
  // Of a ring all-reduce one half is summed; 14 steps.
  const FlowModel ring(with_bulk(), 1, "ring");
  EXPECT_NEAR(microseconds(ring, TransferKind::kAllReduce, 8_MB),
              30 + 7 * 2 + 14 + 7 / (0.45 * 0.75) + 7 / (0.45 * 0.9), 1e-6);
}

TEST(BulkBuffers, SmallerOnesPayTheLaunch) {
  const FlowModel network(with_bulk(), 1, "direct");
  EXPECT_NEAR(microseconds(network, TransferKind::kAllGather, 800_KB), 4 + 1 + 0.7 / (0.45 * 0.5),
              1e-6);
}

TEST(BulkBuffers, PeersInOtherNodesCostNoStart) {
  SystemConfig system = with_bulk();
  system.accelerators_per_node = 4;
  const FlowModel network(system, 1, "direct");
  EXPECT_NEAR(microseconds(network, TransferKind::kAllGather, 8_MB),
              30 + 3 * 2 + 1 + 7 / (0.45 * 0.9), 1e-6);
}

TEST(BulkBuffers, MessagesAndGroupsOfSeveralSystemsAreNone) {
  SystemConfig without = with_bulk();
  without.scale_up.bulk.reset();
  const FlowModel a(with_bulk(), 2), b(without, 2);
  EXPECT_EQ(microseconds(a, TransferKind::kSendReceive, 8_MB, 2),
            microseconds(b, TransferKind::kSendReceive, 8_MB, 2));
  EXPECT_EQ(microseconds(a, TransferKind::kAllToAll, 8_MB),
            microseconds(b, TransferKind::kAllToAll, 8_MB));
  EXPECT_EQ(microseconds(a, TransferKind::kAllGather, 8_MB, 16),
            microseconds(b, TransferKind::kAllGather, 8_MB, 16));
}

TEST(BulkBuffers, ReplayedLoadsTakeAsLongAsThePriceSays) {
  const FlowModel network(with_bulk(), 1);
  const PricedTransfer priced =
      network.price(transfer(TransferKind::kAllReduce, 8_MB, {range(0, 8)}));
  Seconds slowest;
  for (const LinkLoad& load : priced.cost.loads)
    slowest = std::max(slowest, Bytes(load.bytes) / network.capacities()[load.link]);
  EXPECT_NEAR((to_seconds(priced.cost.latency) + slowest).base(), priced.isolated_time.base(),
              1e-12);
}

TEST(BulkBuffers, MoveTheSamePayload) {
  SystemConfig without = with_bulk();
  without.scale_up.bulk.reset();
  const Transfer gather = transfer(TransferKind::kAllGather, 8_MB, {range(0, 8)});
  EXPECT_EQ(FlowModel(with_bulk(), 1).price(gather).bytes.scale_up.base(),
            FlowModel(without, 1).price(gather).bytes.scale_up.base());
}

}  // namespace
}  // namespace orrery::bulk_test
