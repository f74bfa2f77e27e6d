// SPDX-License-Identifier: Apache-2.0
#include "host/sampling.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace orrery::measure::statistics_test {
namespace {

TEST(Statistics, QuantilesInterpolateBetweenOrderStatistics) {
  // Sorted 10 20 30 40: position q * 3. Median at 1.5 -> 25; p10 at 0.3 -> 13; p90 at 2.7 -> 37.
  const Statistics s = summarise({40, 10, 30, 20});
  EXPECT_DOUBLE_EQ(s.median, 25);
  EXPECT_DOUBLE_EQ(s.p10, 13);
  EXPECT_DOUBLE_EQ(s.p90, 37);
  EXPECT_DOUBLE_EQ(s.minimum, 10);
  EXPECT_EQ(s.repeats, 4);
}

TEST(Statistics, SpreadIsTheP10ToP90RangeOverTheMedian) {
  EXPECT_DOUBLE_EQ(summarise({40, 10, 30, 20}).spread(), (37.0 - 13.0) / 25.0);
  EXPECT_DOUBLE_EQ(summarise({5, 5, 5}).spread(), 0);
  EXPECT_DOUBLE_EQ(summarise({0, 0}).spread(), 0);
}

TEST(Statistics, OneSampleIsItsOwnQuantiles) {
  const Statistics s = summarise({7});
  EXPECT_DOUBLE_EQ(s.median, 7);
  EXPECT_DOUBLE_EQ(s.p10, 7);
  EXPECT_DOUBLE_EQ(s.p90, 7);
}

TEST(Statistics, OneOutlierOfNineDoesNotMoveTheMedian) {
  EXPECT_DOUBLE_EQ(summarise({1, 2, 3, 4, 5, 6, 7, 8, 1000}).median, 5);
}

TEST(Statistics, RefusesWhatIsNoTiming) {
  EXPECT_THROW(summarise({}), std::invalid_argument);
  EXPECT_THROW(summarise({1, -1}), std::invalid_argument);
  EXPECT_THROW(summarise({1, std::numeric_limits<double>::quiet_NaN()}), std::invalid_argument);
  EXPECT_THROW(summarise({1, std::numeric_limits<double>::infinity()}), std::invalid_argument);
}

}  // namespace
}  // namespace orrery::measure::statistics_test
