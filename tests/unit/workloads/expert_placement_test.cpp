// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/expert_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "sim/units/hash.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"

namespace orrery::expert_placement_test {
namespace {

using ::testing::ElementsAre;

MoeConfig moe_of(std::int64_t experts, std::int64_t picked) {
  MoeConfig moe;
  moe.experts = experts;
  moe.experts_per_token = picked;
  return moe;
}

HeaviestRank in_order(std::vector<double> loads, std::int64_t picked, int ep) {
  return heaviest_rank(moe_of(static_cast<std::int64_t>(loads.size()), picked), ep, loads, 0,
                       ExpertBalancing::kNone);
}

ExpertRoutingConfig zipf(double exponent, std::int64_t seed = 1) {
  ExpertRoutingConfig routing;
  routing.zipf = exponent;
  routing.seed = seed;
  return routing;
}

double sum_of_loads(const std::vector<double>& loads) {
  return std::accumulate(loads.begin(), loads.end(), 0.0);
}

TEST(ExpertPlacement, WithOneExpertARankTheHeaviestHasTheLargestShareTimesTheExperts) {
  // Half of all copies, a quarter of which is the mean.
  const HeaviestRank rank = in_order({1, 4, 2, 1}, 1, 4);
  EXPECT_DOUBLE_EQ(rank.skew, 0.5 * 4);
  ASSERT_EQ(rank.slots.size(), 1u);
  EXPECT_DOUBLE_EQ(rank.slots[0].chance, 0.5);
}

TEST(ExpertPlacement, NeighboursShareARank) {
  // (1 + 2) + (4 + 1) of 8: the second of two ranks has 5/8, 1.25 of its half.
  const HeaviestRank rank = in_order({1, 2, 4, 1}, 1, 2);
  EXPECT_DOUBLE_EQ(rank.skew, 1.25);
  ASSERT_EQ(rank.slots.size(), 2u);
  EXPECT_DOUBLE_EQ(rank.slots[0].share, 0.8);
  EXPECT_DOUBLE_EQ(rank.slots[1].share, 0.2);
}

TEST(ExpertPlacement, EqualLoadsAreBalanceToTheBit) {
  for (const std::int64_t experts : {8, 60, 128, 160, 256}) {
    for (const int ep : {1, 2, 4}) {
      for (const double load : {1.0, 0.1, 7.0}) {
        const MoeConfig moe = moe_of(experts, 6);
        const std::vector<double> loads(static_cast<std::size_t>(experts), load);
        const HeaviestRank rank = heaviest_rank(moe, ep, loads, 0, ExpertBalancing::kNone);
        EXPECT_EQ(rank.skew, 1);
        ASSERT_EQ(rank.slots.size(), 1u);
        EXPECT_EQ(rank.slots[0].share, 1);
        EXPECT_EQ(rank.active(17.0 * ep), expected_active_slots(moe, ep, 17));
      }
    }
  }
}

TEST(ExpertPlacement, FewTokensTouchFewerOfUnequalExperts) {
  // Three of four tokens pick the first: two tokens miss it with 1/16, the second with 9/16.
  const HeaviestRank rank = in_order({3, 1}, 1, 1);
  EXPECT_DOUBLE_EQ(rank.active(2), 15.0 / 16 + 7.0 / 16);
  EXPECT_DOUBLE_EQ(rank.active(1), 1);  // one expert a token
  EXPECT_NEAR(rank.active(1000), 2, 1e-9);
  EXPECT_LT(rank.active(2), in_order({1, 1}, 1, 1).active(2));
}

TEST(ExpertPlacement, NoTokenPicksAnExpertTwice) {
  const auto shares = [](std::vector<double> loads, std::int64_t picked) {
    loads = attainable_loads(std::move(loads), picked);
    const double sum = sum_of_loads(loads);
    for (double& load : loads) load /= sum;
    return loads;
  };
  const auto are = [](std::vector<double> expected) {
    return testing::Pointwise(testing::DoubleEq(), expected);
  };
  // Two copies a token, 6/9 of them the first's: every token picks it, and the others share half.
  EXPECT_THAT(shares({6, 1, 1, 1}, 2), are({0.5, 1.0 / 6, 1.0 / 6, 1.0 / 6}));
  // Every token picks the first two; the third copy is shared.
  EXPECT_THAT(shares({8, 4, 1, 1}, 3), are({1.0 / 3, 1.0 / 3, 1.0 / 6, 1.0 / 6}));
  EXPECT_THAT(shares({5, 3, 0}, 2), are({0.5, 0.5, 0}));
  EXPECT_THAT(shares({2, 1, 1}, 2), are({0.5, 0.25, 0.25}));  // just what is allowed
}

TEST(ExpertPlacement, TheHeaviestRankGetsItsSkewOfTheCopies) {
  for (const double exponent : {0.2, 0.8, 1.5, 4.0}) {
    for (const int ep : {1, 8, 64}) {
      const HeaviestRank rank = heaviest_rank(moe_of(64, 8), ep, zipf(exponent));
      double copies = 0, shares = 0, slots = 0;
      for (const EqualSlots& equal : rank.slots) {
        EXPECT_LE(equal.chance, 1);
        copies += equal.count * equal.chance;
        shares += equal.share;
        slots += equal.count;
      }
      EXPECT_NEAR(copies, 8 * rank.skew / ep, 1e-9);
      EXPECT_NEAR(shares, 1, 1e-12);
      EXPECT_EQ(slots, 64 / ep);
      EXPECT_GE(rank.skew, 1);
      EXPECT_LE(rank.active(100), slots);
    }
  }
}

TEST(ExpertPlacement, SteeperPopularityIsMoreSkewed) {
  double before = 1;
  for (double exponent = 0; exponent < 3; exponent += 0.1) {
    const double skew = heaviest_rank(moe_of(64, 2), 64, zipf(exponent)).skew;
    EXPECT_GE(skew, before * (1 - 1e-12));
    before = skew;
  }
  EXPECT_NEAR(before, 32, 1e-9);  // half of all copies, at most, are of one expert
}

TEST(ExpertPlacement, ThePowerLawOfASeedIsThatOfEveryOtherInAnotherOrder) {
  std::vector<double> first = zipf(1, 1).popularity(5), second = zipf(1, 2).popularity(5);
  EXPECT_EQ(first, zipf(1, 1).popularity(5));
  EXPECT_NE(first, second);
  for (std::vector<double>* loads : {&first, &second})
    std::sort(loads->begin(), loads->end(), std::greater<>());
  EXPECT_THAT(first, ElementsAre(1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5));
  EXPECT_EQ(first, second);
}

TEST(Eplb, ReplicatesWhatHasTheLargestLoadAReplica) {
  EXPECT_THAT(eplb_replicas({90, 10}, 2), ElementsAre(3, 1));  // 90, then 45 against 10
  EXPECT_THAT(eplb_replicas({60, 50, 10}, 2), ElementsAre(2, 2, 1));
  EXPECT_THAT(eplb_replicas({4, 4}, 1), ElementsAre(2, 1));  // the first of equals
  EXPECT_THAT(eplb_replicas({3, 2, 1}, 0), ElementsAre(1, 1, 1));
}

TEST(Eplb, PacksTheHeaviestFirstWhereThereIsRoomAndLeastLoad) {
  // 7 | 5, 5 + 4 = 9 > 7, 7 + 3 = 10, 9 + 2 = 11 is full, 1 goes to the other.
  EXPECT_THAT(eplb_packing({7, 5, 4, 3, 2, 1}, 2), ElementsAre(0, 1, 1, 0, 1, 0));
  // A light rank that is full takes no more: 9 | 1, 1, and the last has to join the heaviest.
  EXPECT_THAT(eplb_packing({9, 1, 1, 1}, 2), ElementsAre(0, 1, 1, 0));
}

TEST(Eplb, TwoReplicasOfNineInTenCopies) {
  // Alone 90 of 50 in the mean; three replicas of 30 beside one of 10: 60 and 40.
  const std::vector<double> loads = {90, 10};
  const MoeConfig moe = moe_of(2, 1);
  EXPECT_DOUBLE_EQ(heaviest_rank(moe, 2, loads, 0, ExpertBalancing::kEplb).skew, 1.8);
  const HeaviestRank rank = heaviest_rank(moe, 2, loads, 2, ExpertBalancing::kEplb);
  EXPECT_DOUBLE_EQ(rank.skew, 1.2);
  ASSERT_EQ(rank.slots.size(), 1u);
  EXPECT_EQ(rank.slots[0].count, 2);
  EXPECT_DOUBLE_EQ(rank.slots[0].chance, 0.3);  // a third of nine tokens in ten
  EXPECT_EQ(rank.placed, 4);
}

TEST(Eplb, KeepsEveryLoadAndAsManyOnEachRank) {
  std::uint64_t state = 3;
  std::vector<double> loads(96);
  for (double& load : loads) load = next_uniform(state);
  const std::vector<int> rank_of = eplb_packing(loads, 12);
  std::vector<int> count(12);
  std::vector<double> packed(12);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    ++count[static_cast<std::size_t>(rank_of[i])];
    packed[static_cast<std::size_t>(rank_of[i])] += loads[i];
  }
  EXPECT_THAT(count, testing::Each(8));
  EXPECT_NEAR(sum_of_loads(packed), sum_of_loads(loads), 1e-9);
}

TEST(Eplb, OfPowerLawsIsNeverWorseThanOrder) {
  for (const double exponent : {0.0, 0.3, 0.8, 1.2}) {
    for (std::int64_t seed = 1; seed <= 8; ++seed) {
      ExpertRoutingConfig routing = zipf(exponent, seed);
      const MoeConfig moe = moe_of(256, 8);
      const double alone = heaviest_rank(moe, 32, routing).skew;
      routing.balancing = ExpertBalancing::kEplb;
      const double packed = heaviest_rank(moe, 32, routing).skew;
      routing.redundant_experts = 32;
      const double replicated = heaviest_rank(moe, 32, routing).skew;
      EXPECT_LE(packed, alone);
      // Equal loads have no use for replicas: halves of some do not fill ranks as wholes did.
      if (exponent > 0) {
        EXPECT_LE(replicated, packed);
      }
    }
  }
}

/// Eight experts, two a token, on eight ranks; 3 sequences a rank.
InferenceConfig uneven_decode(std::vector<double> loads) {
  InferenceConfig config;
  config.parallel.dp = config.parallel.ep = 8;
  config.micro_batch = 3;
  config.kv_length = 16;
  config.expert_routing.emplace().loads = std::move(loads);
  return config;
}

const Kernel& kernel_of(const StepList& list, const std::string& name) {
  for (const Step& step : list.steps())
    if (step.kernel() != nullptr && step.name() == name) return *step.kernel();
  throw std::logic_error("no kernel " + name);
}

const LayerCollective& collective_of(const StepList& list, const std::string& name) {
  for (const Step& step : list.steps())
    if (step.collective() != nullptr && step.name() == name) return *step.collective();
  throw std::logic_error("no collective " + name);
}

TEST(UnevenRouting, TheHeaviestRankComputesItsRowsAndExchangesCarryItsSkew) {
  const LlmConfig model = small_moe(1);
  const InferenceConfig config = uneven_decode({2, 1, 1, 1, 1, 1, 1, 0});
  const StepList list = layer_forward(model, model.layers[0], rank_work(model, config));
  const Kernel& up = kernel_of(list, "expert up");
  // 6 copies of a rank's tokens in the mean, a quarter of all 48 here; half of 24 tokens pick it.
  EXPECT_EQ(up.load.rows, 12);
  EXPECT_DOUBLE_EQ(up.matrix_flops.base(), 2.0 * 12 * 64 * 64);
  EXPECT_DOUBLE_EQ(up.load.active, 1 - std::pow(0.5, 24));
  EXPECT_DOUBLE_EQ(up.load.expected, 6);
  EXPECT_EQ(kernel_of(list, "expert activation").vector_flops,
            kernel_of(list, "shared expert activation").vector_flops * 4);  // 12 rows of 32, 3
  const LayerCollective& dispatch = collective_of(list, "dispatch");
  EXPECT_DOUBLE_EQ(dispatch.routing->skew, 2);
  EXPECT_EQ(dispatch.routing->experts, 8);
  EXPECT_EQ(dispatch.bytes.base(), 6.0 * 64 * 2);  // sent by each rank, as ever
  EXPECT_DOUBLE_EQ(collective_of(list, "combine").routing->skew, 2);
}

TEST(UnevenRouting, AnAllReducingRankMakesTheCopiesOfItsExperts) {
  const LlmConfig model = small_moe(1);
  InferenceConfig config = uneven_decode({2, 1, 1, 1, 1, 1, 1, 0});
  config.parallel = {.tp = 8, .ep = 8};
  const StepList list = layer_forward(model, model.layers[0], rank_work(model, config));
  // 3 tokens, 2 copies, over 8 ranks: one row rounded up, twice that here.
  EXPECT_EQ(kernel_of(list, "expert up").load.rows, 2);
  EXPECT_DOUBLE_EQ(kernel_of(list, "expert up").load.active, 1 - std::pow(0.5, 3));
}

TEST(UnevenRouting, EachExpertFillsTheBlocksOfItsOwnRows) {
  const LlmConfig model = small_moe(1);
  InferenceConfig config = uneven_decode({5, 1, 1, 1, 1, 1, 1, 1});
  config.parallel = {.dp = 2, .ep = 2};
  config.micro_batch = 240;
  const StepList list = layer_forward(model, model.layers[0], rank_work(model, config));
  const ExpertLoad& load = kernel_of(list, "expert up").load;
  // 960 copies: 8 of 12 on the first rank, of which one expert has 400 and three 80.
  EXPECT_DOUBLE_EQ(load.rows, 640);
  EXPECT_NEAR(load.active, 4, 1e-9);
  const std::size_t k128 = 4;
  ASSERT_EQ(ExpertLoad::kHeights[k128], 128);
  EXPECT_NEAR(load.blocks[k128], 4 + 3, 1e-6);  // evenly it were 4 x 2
  EXPECT_DOUBLE_EQ(load.expected, 120);
}

TEST(UnevenRouting, ReplicasTakeTheMemoryOfExpertsAndSpreadGroups) {
  LlmConfig model = small_moe(3);
  model.moe.groups = 4;
  model.moe.top_groups = 2;
  InferenceConfig config = uneven_decode({2, 1, 1, 1, 1, 1, 1, 0});
  config.parallel = {.dp = 2, .ep = 2};
  const auto weights = [&] { return inference_memory(model, config)[0].weights.base(); };
  const double alone = weights();
  const auto groups = [&] {
    return collective_of(layer_forward(model, model.layers[0], rank_work(model, config)),
                         "dispatch")
        .routing->groups;
  };
  EXPECT_EQ(groups(), 4);
  config.expert_routing->balancing = ExpertBalancing::kEplb;
  config.expert_routing->redundant_experts = 4;
  // Two more on each rank in each of three layers: three matrices of 64 x 32 in two bytes.
  EXPECT_EQ(weights() - alone, 3 * 2 * 3 * 64 * 32 * 2.0);
  EXPECT_EQ(groups(), 0);
}

TEST(UnevenRouting, TheHeaviestRankKeepsTheActivationsOfItsRows) {
  const LlmConfig model = small_moe(1);
  InferenceConfig config = uneven_decode({2, 1, 1, 1, 1, 1, 1, 0});
  config.phase = Phase::kPrefill;
  config.sequence = 64;
  const double heavy = inference_memory(model, config)[0].working.base();
  config.expert_routing.reset();
  // 3 x 64 tokens, 2 copies: the larger of both products' rows, 2 x 32 and 64, and an activation of
  // 32; 2 bytes each.
  EXPECT_EQ(heavy - inference_memory(model, config)[0].working.base(),
            3.0 * 64 * 2 * (64 + 32) * 2);
}

}  // namespace
}  // namespace orrery::expert_placement_test
