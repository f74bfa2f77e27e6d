// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/clock.h"

#include <gtest/gtest.h>

namespace orrery::die_spread_test {
namespace {

AcceleratorConfig chip() {
  AcceleratorConfig a;
  a.power.idle.value = Watts(100);
  a.power.tdp.value = Watts(700);
  a.power.spread.value = 0.05;
  return a;
}

// Means of the largest of n standard normal draws: Harter 1961, table 1.
TEST(DieSpread, LargestOfManyDrawsIsNearItsMean) {
  EXPECT_EQ(expected_largest(1), 0);
  EXPECT_NEAR(expected_largest(2), 0.5642, 0.03);
  EXPECT_NEAR(expected_largest(8), 1.4236, 0.02);
  EXPECT_NEAR(expected_largest(100), 2.5076, 0.02);
}

// 8 dies: the one that needs 1 + 0.05 x 1.43 times the energy has 600 W for it, an ordinary one
// then takes 560 W.
TEST(DieSpread, OrdinaryDiesDrawLessThanTheCapWhereOthersAreAtIt) {
  const double more = 1 + 0.05 * expected_largest(8);
  EXPECT_NEAR(slowest_of(chip(), 8).power.cap().base(), 100 + 600 / more, 1e-9);
  EXPECT_LT(slowest_of(chip(), 512).power.cap(), slowest_of(chip(), 8).power.cap());
}

TEST(DieSpread, LowersALimitThatSomebodySet) {
  AcceleratorConfig limited = chip();
  limited.power.limit = limited.power.tdp;
  limited.power.limit->value = Watts(400);
  EXPECT_NEAR(slowest_of(limited, 8).power.cap().base(),
              100 + 300 / (1 + 0.05 * expected_largest(8)), 1e-9);
}

TEST(DieSpread, OneDieAndDiesAllAlikeHaveTheWholeCap) {
  EXPECT_EQ(slowest_of(chip(), 1).power.cap(), Watts(700));
  AcceleratorConfig alike = chip();
  alike.power.spread.value = 0;
  EXPECT_EQ(slowest_of(alike, 512).power.cap(), Watts(700));
  EXPECT_FALSE(slowest_of(alike, 512).power.limit.has_value());
}

}  // namespace
}  // namespace orrery::die_spread_test
