// SPDX-License-Identifier: Apache-2.0
// Latency of routes that are longer than the shortest.
#include <gtest/gtest.h>

#include <vector>

#include "models/transfers/flow_model.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::hop_latency_test {
namespace {

using namespace orrery::fixtures;

constexpr Picoseconds kUp = 1'000'000, kOut = 5'000'000;      // of a step
constexpr Picoseconds kUpLink = 300'000, kOutLink = 400'000;  // of a link more

SystemConfig with_hops(SystemConfig system) {
  system.scale_up.hop_latency.value = 0.3_us;
  system.scale_out.hop_latency.value = 0.4_us;
  return system;
}

Picoseconds message(const FlowModel& network, int source, int destination) {
  return network.cost(transfer(TransferKind::kSendReceive, 1_MB, {{source, destination}})).latency;
}
Picoseconds latency(const SystemConfig& system, TransferKind kind, const std::string& algorithm) {
  const FlowModel network(system, 1, algorithm);
  return network.cost(transfer(kind, 1_MB, {range(0, system.ranks())})).latency;
}

TEST(HopLatency, GrowsWithTheLinksBetweenTheRanksOfATorus) {
  const FlowModel network(with_hops(tpu({6, 4}, 50_GBps)), 1);
  EXPECT_EQ(message(network, 0, 1), kUp);
  EXPECT_EQ(message(network, 0, 5), kUp);                        // around the ring
  EXPECT_EQ(message(network, 0, 7), kUp + kUpLink);              // one along each axis
  EXPECT_EQ(message(network, 0, 2 * 6 + 3), kUp + 4 * kUpLink);  // the farthest: 3 + 2 links
}

TEST(HopLatency, OfARingIsThatOfItsChain) {
  // In rank order on 4 x 4: from row to row two links, four times around; a chain of 15 of the 16
  // routes has all of them.
  const SystemConfig system = with_hops(tpu({4, 4}, 50_GBps));
  EXPECT_EQ(latency(system, TransferKind::kAllGather, "ring"), 15 * kUp + 4 * kUpLink);
  EXPECT_EQ(latency(system, TransferKind::kAllReduce, "ring"), 30 * kUp + 8 * kUpLink);
}

TEST(HopLatency, OfNeighboursOnATorusIsNone) {
  // 2 x (3 + 3) steps, each to a neighbour.
  EXPECT_EQ(latency(with_hops(tpu({4, 4}, 50_GBps)), TransferKind::kAllReduce, "torus"), 12 * kUp);
}

TEST(HopLatency, OfATorusHasTheDetourOfOneChainAPass) {
  // 0 to 1 the other way round: three links. A chunk passes there once in each of two passes.
  const SystemConfig system = with_hops(tpu({4, 4}, 50_GBps));
  const FlowModel whole(system, 1);
  const auto dead =
      static_cast<BundleId>(link(whole, "system0/node0/accelerator0->system0/node0/accelerator1"));
  const std::vector<LinkFault> faults = {{dead, 0}};
  const FlowModel network(system, 1, "torus", "auto", faults);
  const Transfer all_reduce = transfer(TransferKind::kAllReduce, 1_MB, {range(0, 16)});
  EXPECT_EQ(network.cost(all_reduce).latency, 12 * kUp + 4 * kUpLink);
}

TEST(HopLatency, OfRoundsIsThatOfEachPartner) {
  // Doubling on a ring of 8: partners 1, 2 and 4 links away.
  SystemConfig ring = with_hops(tpu({8}, 50_GBps));
  EXPECT_EQ(latency(ring, TransferKind::kAllGather, "recursive"), 3 * kUp + (0 + 1 + 3) * kUpLink);
}

TEST(HopLatency, OfAnExchangeIsThatOfTheFarthestPair) {
  EXPECT_EQ(latency(with_hops(tpu({6, 4}, 50_GBps)), TransferKind::kAllToAll, "direct"),
            kUp + 4 * kUpLink);
}

TEST(HopLatency, OfAMeshIsThatOfTheRelay) {
  const FlowModel network(with_hops(dgx_1()), 1);
  EXPECT_EQ(message(network, 0, 4), kUp);
  EXPECT_EQ(message(network, 0, 5), kUp + kUpLink);
}

TEST(HopLatency, OfTwoBoardsIsThatOfTheTrunk) {
  const FlowModel network(with_hops(dgx_2()), 1);
  EXPECT_EQ(message(network, 0, 7), kUp);
  EXPECT_EQ(message(network, 0, 8), kUp + kUpLink);
}

TEST(HopLatency, GrowsWithTheTiersOfATree) {
  SystemConfig system = with_hops(dgx_h100());
  system.scale_out.nodes_per_leaf_group = 2;
  system.scale_out.leaf_groups_per_pod = 2;
  const FlowModel network(system, 8);
  EXPECT_EQ(message(network, 0, 8), kOut);                  // over the leaf
  EXPECT_EQ(message(network, 0, 16), kOut + 2 * kOutLink);  // over a spine
  EXPECT_EQ(message(network, 0, 32), kOut + 4 * kOutLink);  // over a core
  EXPECT_EQ(message(network, 0, 9), kOut + 2 * kUpLink);    // to the other rail inside the node
}

TEST(HopLatency, IsAgainstTheShortestWayThatThereIs) {
  SystemConfig system = with_hops(dgx_h100());
  system.scale_out.nodes_per_leaf_group = 1;  // no two systems share a leaf
  const FlowModel network(system, 4);
  EXPECT_EQ(message(network, 0, 8), kOut);
}

TEST(HopLatency, MovesNothingWhereAllWaysAreEquallyLong) {
  for (const SystemConfig& system : {dgx_h100(), nvl72()}) {
    for (const TransferKind kind : {TransferKind::kAllReduce, TransferKind::kAllToAll}) {
      EXPECT_EQ(latency(with_hops(system), kind, "auto"), latency(system, kind, "auto"));
    }
  }
}

TEST(HopLatency, HasTheDetourAroundADeadLink) {
  const SystemConfig system = with_hops(mi300x());
  const FlowModel whole(system, 1);
  EXPECT_EQ(message(whole, 0, 1), kUp);
  const auto dead =
      static_cast<BundleId>(link(whole, "system0/node0/accelerator0->system0/node0/accelerator1"));
  const std::vector<LinkFault> faults = {{dead, 0}};
  const FlowModel network(system, 1, "auto", "auto", faults);
  EXPECT_EQ(message(network, 0, 1), kUp + kUpLink);
  EXPECT_EQ(message(network, 1, 0), kUp);
}

}  // namespace
}  // namespace orrery::hop_latency_test
