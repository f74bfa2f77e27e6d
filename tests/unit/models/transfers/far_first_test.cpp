// SPDX-License-Identifier: Apache-2.0
// NCCL's PAT, which its tuner takes among one rank of each node (NCCL 5067397 src/graph/tuning.cc).
#include <gtest/gtest.h>

#include "models/transfers/flow_model.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::far_first_test {
namespace {

using namespace orrery::fixtures;

SystemConfig with_pat() {
  SystemConfig system = with_nccl(dgx_h100());
  system.scale_up.protocols->pat = true;
  return system;
}

/// The first rank of each of so many systems of eight.
std::vector<int> one_of_each(int systems) {
  std::vector<int> ranks;
  for (int s = 0; s < systems; ++s) ranks.push_back(8 * s);
  return ranks;
}

PricedTransfer gather(const FlowModel& network, Bytes bytes, int systems) {
  return network.price(transfer(TransferKind::kAllGather, bytes, {one_of_each(systems)}));
}

TEST(FarFirst, ManyNodesOfOneRankGatherAndScatterByPat) {
  const FlowModel network(with_pat(), 32);
  // Expected: 8 + 5 x 4 + 32 x 2.8 + 28 us by PAT, 6.6 + 31 x 5 us and more by a ring of LL.
  EXPECT_EQ(gather(network, 1_MiB, 32).algorithm, "pat");
  EXPECT_EQ(gather(network, 1_MiB, 32).protocol, "simple");
  EXPECT_EQ(
      network.price(transfer(TransferKind::kReduceScatter, 1_MiB, {one_of_each(32)})).algorithm,
      "pat");
}

TEST(FarFirst, FewNodesAndLargeBuffersGoByRing) {
  const FlowModel network(with_pat(), 32);
  // 8 + 2 x 4 + 4 x 2.8 us by PAT, 6.6 + 3 x 5 us by a ring of LL.
  EXPECT_EQ(gather(network, 1_KiB, 4).algorithm, "ring");
  // PAT counts on 0.75 of the rate.
  EXPECT_EQ(gather(network, 16_GiB, 32).algorithm, "ring");
}

TEST(FarFirst, OnlyOneRankOfEachNodeGoesByPat) {
  const FlowModel network(with_pat(), 32);
  std::vector<int> two_of_each = one_of_each(32);
  for (int s = 0; s < 32; ++s) two_of_each.push_back(8 * s + 1);
  const auto algorithm = [&](TransferKind kind, std::vector<int> group) {
    return network.price(transfer(kind, 1_MiB, {std::move(group)})).algorithm;
  };
  EXPECT_NE(algorithm(TransferKind::kAllGather, two_of_each), "pat");
  EXPECT_NE(algorithm(TransferKind::kAllGather, range(0, 8)), "pat");
  EXPECT_NE(algorithm(TransferKind::kAllReduce, one_of_each(32)), "pat");
}

TEST(FarFirst, LibrariesWithoutItTakeRings) {
  const FlowModel network(with_nccl(dgx_h100()), 32);
  EXPECT_EQ(gather(network, 1_MiB, 32).algorithm, "ring");
  SystemConfig other = with_pat();
  other.scale_up.protocols->topologies = {"torus"};  // the library chooses no algorithm
  EXPECT_NE(gather(FlowModel(other, 32), 1_MiB, 32).algorithm, "pat");
}

TEST(FarFirst, ADoublingCostsAStepAndEachRankItsPart) {
  const FlowModel network(with_pat(), 64, "pat");
  const Seconds more =
      gather(network, 64_B, 64).isolated_time - gather(network, 64_B, 32).isolated_time;
  // A step of 14 / 3.5 us and the 1.4 us that this network has beyond NCCL's, 32 ranks of 2.8 us.
  EXPECT_NEAR(more.base() * 1e6, 4 + 1.4 + 32 * 2.8, 0.01);
}

TEST(FarFirst, OneRankOfEachNodeExposesTheStepsOfRings) {
  // All-reduces of 16 KiB: NCCL expects 2 x 31 steps of 5.0 us of LL, of more ranks 2.7 us, so that
  // trees (2 x 5 of 5.0 us) win by more.
  const FlowModel network(with_pat(), 32);
  EXPECT_EQ(network.price(transfer(TransferKind::kAllReduce, 16_KiB, {one_of_each(32)})).algorithm,
            "tree");
}

}  // namespace
}  // namespace orrery::far_first_test
