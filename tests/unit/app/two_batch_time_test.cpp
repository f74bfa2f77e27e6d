// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/two_batch_time.h"

#include <gtest/gtest.h>

namespace orrery::two_batch_time_test {
namespace {

/// Kernels that exchanges beside them do not slow.
TurnWork kernels(double time) { return {time, {time, time, time, time}}; }

TurnLayer turn(double before, double experts, double exchange) {
  TurnLayer layer;
  layer.attend = kernels(before);
  layer.experts = kernels(experts);
  layer.dispatch = layer.combine = exchange;
  return layer;
}

double time_of(const TurnLayer& both, std::int64_t layers) {
  return alternating_time({both, both}, layers);
}

TEST(TwoBatchTime, ShortExchangesHideBehindKernels) {
  // Kernels of both batches, 2 x (3 + 4) a layer; only the combine of the second is seen at the
  // end.
  EXPECT_DOUBLE_EQ(time_of(turn(3, 4, 2), 1), 14 + 2);
  EXPECT_DOUBLE_EQ(time_of(turn(3, 4, 2), 10), 140 + 2);
}

TEST(TwoBatchTime, LongExchangesAreWhatTheStepTakes) {
  // One layer: 1, then four exchanges of 10 without a gap, while kernels of 1 wait for them.
  EXPECT_DOUBLE_EQ(time_of(turn(1, 1, 10), 1), 1 + 4 * 10);
  // The first's next dispatch waits for the second's combine, on their one stream.
  EXPECT_DOUBLE_EQ(time_of(turn(1, 1, 10), 5), 1 + 5 * 4 * 10);
}

TEST(TwoBatchTime, WithoutExchangesKernelsFollowEachOther) {
  TurnLayer layer = turn(3, 4, 0);
  layer.project = kernels(1);
  layer.route = kernels(0.5);
  layer.shared = kernels(2);
  layer.add_up = kernels(0.25);
  EXPECT_DOUBLE_EQ(time_of(layer, 7), 7 * 2 * (3 + 4 + 1 + 0.5 + 2 + 0.25));
}

TEST(TwoBatchTime, SharedExpertsHideADispatch) {
  // 0 to 1 and 1 to 2 before dispatches of 4: 1 to 5, 5 to 9. Shared experts until 4, experts 5 to
  // 6; shared of the second until 8, experts 9 to 10; combines of 4 from 9 to 13 and on to 17.
  TurnLayer layer = turn(1, 1, 4);
  layer.shared = kernels(2);
  EXPECT_DOUBLE_EQ(time_of(layer, 1), 17);
}

TEST(TwoBatchTime, KernelsBesideAnExchangeAreSlower) {
  // The second batch's 3 beside a dispatch of 2: two at half the speed, then 2 alone. Its own
  // dispatch, 7 to 9, slows the experts of the first: one of 4 is done by then, 3 are left. Its
  // combine, 12 to 14, slows those of the second: one of 4 in 2, and 3 alone until 17. Its own
  // is seen until 19.
  TurnLayer layer = turn(3, 4, 2);
  for (TurnWork* work : {&layer.attend, &layer.experts})
    for (double& beside : work->beside) beside = 2 * work->alone;
  EXPECT_DOUBLE_EQ(time_of(layer, 1), 19);
}

TEST(TwoBatchTime, StagesHideACombineBehindAttention) {
  // 1 (attention), dispatch of 4 from 1 to 5, experts until 6, combine until 10 beside the
  // attention of the second, until 7, whose dispatch has to wait for the sum: from 10 to 14. Its
  // experts until 15, and its combine until 19 with nothing beside.
  EXPECT_DOUBLE_EQ(staged_time({turn(1, 1, 4), turn(1, 1, 4)}, 1), 19);
  // With attention of 5 the combine of the first, 10 to 14, is hidden: the second's dispatch from
  // 15 to 19, experts until 20, combine until 24.
  EXPECT_DOUBLE_EQ(staged_time({turn(5, 1, 4), turn(5, 1, 4)}, 1), 24);
}

TEST(TwoBatchTime, StagesHideADispatchBehindSharedExpertsAndProjections) {
  TurnLayer layer = turn(0, 1, 4);
  EXPECT_DOUBLE_EQ(staged_time({layer, layer}, 1), 18);
  layer.shared = kernels(1);
  layer.project = kernels(2);
  // 2, dispatch until 6 beside shared experts (3) and the second's projections (5), experts until
  // 7, combine until 11, dispatch until 15, experts 16, combine until 20.
  EXPECT_DOUBLE_EQ(staged_time({layer, layer}, 1), 20);
}

TEST(TwoBatchTime, StagesOfManyLayersAreAsManyOneByOne) {
  TurnLayer first = turn(3.3, 4.1, 5.7), second = turn(2.9, 3.7, 5.2);
  first.add_up = second.add_up = kernels(0.3);
  first.project = second.send = kernels(0.7);
  const auto of = [&](std::int64_t layers) { return staged_time({first, second}, layers); };
  EXPECT_NEAR(of(1000), of(100) + 900 * (of(101) - of(100)), 1e-6 * of(1000));
  const double kernels_alone = 3.3 + 4.1 + 2.9 + 3.7 + 0.3 + 0.3 + 0.7 + 0.7;
  EXPECT_GE(of(10), 10 * kernels_alone);
  EXPECT_LE(of(10), 10 * (kernels_alone + 2 * 5.7 + 2 * 5.2));
}

TEST(TwoBatchTime, LiesBetweenKernelsAloneAndOneAfterTheOther) {
  for (const double before : {0.5, 2.0, 7.0}) {
    for (const double experts : {0.5, 3.0, 9.0}) {
      for (const double exchange : {0.0, 1.0, 6.0, 30.0}) {
        const double time = time_of(turn(before, experts, exchange), 20);
        EXPECT_GE(time, 20 * 2 * (before + experts));
        EXPECT_GE(time, 20 * 4 * exchange);
        EXPECT_LE(time, 20 * (2 * (before + experts) + 4 * exchange));
        EXPECT_LE(time, time_of(turn(before, experts, exchange + 0.1), 20));
        EXPECT_LE(time, time_of(turn(before, experts, exchange), 21));
      }
    }
  }
}

TEST(TwoBatchTime, ManyLayersAreAsManyOneByOne) {
  // Layers that repeat are not walked: 1,000 take what the growth from 100 to 101 says.
  TurnLayer first = turn(3.3, 4.1, 5.7), second = turn(2.9, 3.7, 5.2);
  first.add_up = second.add_up = kernels(0.3);
  const auto of = [&](std::int64_t layers) { return alternating_time({first, second}, layers); };
  EXPECT_NEAR(of(1000), of(100) + 900 * (of(101) - of(100)), 1e-6 * of(1000));
}

}  // namespace
}  // namespace orrery::two_batch_time_test
