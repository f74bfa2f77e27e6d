// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/front.h"

#include <gtest/gtest.h>

#include "sim/app/questions/points/main_effects.h"
#include "sim/units/hash.h"

namespace orrery::front_test {
namespace {

using Columns = std::vector<std::vector<double>>;

bool dominates(const Columns& columns, std::size_t a, std::size_t b) {
  bool better = false;
  for (const auto& column : columns) {
    if (column[a] > column[b]) return false;
    better = better || column[a] < column[b];
  }
  return better;
}

std::vector<std::size_t> by_brute_force(const Columns& columns) {
  std::vector<std::size_t> front;
  const std::size_t count = columns.front().size();
  for (std::size_t point = 0; point < count; ++point) {
    bool dominated = false;
    for (std::size_t other = 0; other < count && !dominated; ++other)
      dominated = dominates(columns, other, point);
    if (!dominated) front.push_back(point);
  }
  return front;
}

TEST(ParetoFront, IsThatOfBruteForceForRandomPoints) {
  std::uint64_t state = 1;
  for (int round = 0; round < 400; ++round) {
    const std::size_t objectives = 1 + next_random(state) % 5, count = 1 + next_random(state) % 120;
    // Few values: many ties and equal points. Many values: few.
    const std::uint64_t values = round % 2 == 0 ? 6 : 1000000;
    Columns columns(objectives, std::vector<double>(count));
    for (auto& column : columns)
      for (double& value : column) value = static_cast<double>(next_random(state) % values) - 3;
    EXPECT_EQ(pareto_front(columns), by_brute_force(columns)) << objectives << " " << count;
  }
}

TEST(ParetoFront, KeepsEqualPointsAndHasAllOfOneLine) {
  EXPECT_EQ(pareto_front({{1, 1, 2}, {1, 1, 1}}), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(pareto_front({{1, 2, 3}, {3, 2, 1}}), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(pareto_front({{1, 2, 3}, {1, 2, 3}}), (std::vector<std::size_t>{0}));
  EXPECT_TRUE(pareto_front({{}, {}}).empty());
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(MainEffects, AreTheTermsOfASumOfInputs) {
  // metric = 10 a + 100 b + c: levels less their mean, whatever the others are.
  std::vector<std::vector<std::uint32_t>> inputs(3);
  std::vector<double> metric;
  for (std::uint32_t a = 0; a < 3; ++a)
    for (std::uint32_t b = 0; b < 2; ++b)
      for (std::uint32_t c = 0; c < 4; ++c) {
        inputs[0].push_back(a);
        inputs[1].push_back(b);
        inputs[2].push_back(c);
        metric.push_back(10 * a + 100 * b + c);
      }
  const std::vector<MainEffect> effects = main_effects(inputs, metric);
  ASSERT_EQ(effects.size(), 3U);
  EXPECT_DOUBLE_EQ(effects[0].swing, 20);
  EXPECT_DOUBLE_EQ(effects[1].swing, 100);
  EXPECT_DOUBLE_EQ(effects[2].swing, 3);
  EXPECT_EQ(effects[0].groups, 8U);
  EXPECT_DOUBLE_EQ(effects[0].least, 20);
  EXPECT_DOUBLE_EQ(effects[0].most, 20);
  ASSERT_EQ(effects[0].levels.size(), 3U);
  EXPECT_DOUBLE_EQ(effects[0].levels[0].effect, -10);
  EXPECT_DOUBLE_EQ(effects[0].levels[2].effect, 10);
}

TEST(MainEffects, TellsRangesAndWhatNeverChangesAlone) {
  // a and b move together, c alone; c's effect is 1 where a is 0, and 5 where a is 1.
  const std::vector<std::vector<std::uint32_t>> inputs = {{0, 0, 1, 1}, {0, 0, 1, 1}, {0, 1, 0, 1}};
  const std::vector<MainEffect> effects = main_effects(inputs, {10, 11, 20, 25});
  EXPECT_EQ(effects[0].groups, 0U);
  EXPECT_EQ(effects[1].groups, 0U);
  EXPECT_EQ(effects[2].groups, 2U);
  EXPECT_DOUBLE_EQ(effects[2].swing, 3);
  EXPECT_DOUBLE_EQ(effects[2].least, 1);
  EXPECT_DOUBLE_EQ(effects[2].most, 5);
}

TEST(MainEffects, CountPointsThatAreAlikeInAllInputsAsTheirMean) {
  const std::vector<MainEffect> effects = main_effects({{0, 0, 1}}, {1, 3, 6});
  EXPECT_EQ(effects[0].groups, 1U);
  EXPECT_DOUBLE_EQ(effects[0].swing, 4);
}

}  // namespace
}  // namespace orrery::front_test
