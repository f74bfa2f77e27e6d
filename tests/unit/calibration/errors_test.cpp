// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/errors.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::errors_test {
namespace {

TEST(Errors, AreRelativeToTheMeasurement) {
  // +10 %, -20 %, +30 %, 0 %: mean of sizes 15 %, mean 5 %, median of sizes (10 + 20) / 2.
  const ErrorSummary e = summarise({{11, 10}, {8, 10}, {13, 10}, {10, 10}});
  EXPECT_EQ(e.count, 4);
  EXPECT_NEAR(e.mape, 0.15, 1e-12);
  EXPECT_NEAR(e.bias, 0.05, 1e-12);
  EXPECT_NEAR(e.median, 0.15, 1e-12);
  EXPECT_NEAR(e.p90, 0.2 + 0.7 * 0.1, 1e-12);  // place 2.7 among 0, 10, 20, 30 %
  EXPECT_NEAR(e.worst, 0.3, 1e-12);
}

TEST(Errors, TheWorstKeepsItsSign) {
  EXPECT_NEAR(summarise({{11, 10}, {4, 10}}).worst, -0.6, 1e-12);
}

TEST(Errors, OfNoRowsAreZero) { EXPECT_EQ(summarise({}).count, 0); }

TEST(SizeClass, LimitsBelongToTheLargerClass) {
  EXPECT_STREQ(size_class(9.99), "<10us");
  EXPECT_STREQ(size_class(10), "10-100us");
  EXPECT_STREQ(size_class(100), "0.1-1ms");
  EXPECT_STREQ(size_class(1000), "1-10ms");
  EXPECT_STREQ(size_class(10000), ">10ms");
}

/// `count` rows predicted at `predicted` us whose logarithms are spread evenly over +-`half`.
void add(std::vector<Comparison>& rows, double predicted, int count, double half) {
  for (int i = 0; i < count; ++i) {
    const double share = (i + 0.5) / count * 2 - 1;
    rows.push_back({predicted, predicted * std::exp(half * share)});
  }
}

TEST(ResidualClasses, TellTheSpreadOfEachDecade) {
  std::vector<Comparison> rows;
  add(rows, 5, 100, 0.5);
  add(rows, 50, 100, 0.1);
  const std::vector<ResidualClass> classes = residual_classes(rows);
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].below_us, 10);
  EXPECT_EQ(classes[1].below_us, 0);
  // Uniform on +-h: p90 - p10 = 1.6 h, over 2.563: 0.624 h.
  EXPECT_NEAR(classes[0].sigma, 0.312, 0.01);
  EXPECT_NEAR(classes[1].sigma, 0.0624, 0.002);
  EXPECT_NEAR(classes[0].median, 0, 1e-9);
}

TEST(ResidualClasses, AFewRowsJoinTheirNeighbours) {
  std::vector<Comparison> rows;
  add(rows, 5, 3, 0.5);
  add(rows, 50, 100, 0.1);
  add(rows, 5000, 3, 0.1);
  const std::vector<ResidualClass> classes = residual_classes(rows);
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].count, 106);
  EXPECT_EQ(classes[0].below_us, 0);
}

}  // namespace
}  // namespace orrery::errors_test
