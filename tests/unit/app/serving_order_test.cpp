// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_order.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery {
namespace {

TEST(OperatingFront, HasWhatNoOtherPointBeatsInBoth) {
  const auto front = operating_front({{10, 300}, {40, 100}, {20, 90}, {20, 200}, {10, 250}});
  ASSERT_EQ(front.size(), 3U);
  EXPECT_EQ(front[0].user, 40);
  EXPECT_EQ(front[1].accelerator, 200);
  EXPECT_EQ(front[2].accelerator, 300);
}

TEST(OperatingFront, IsStraightInLogarithms) {
  const std::vector<OperatingPoint> front = {{40, 100}, {10, 400}};
  EXPECT_NEAR(*front_at(front, 20), 200, 1e-9);
  EXPECT_EQ(*front_at(front, 5), 400);
  EXPECT_FALSE(front_at(front, 41).has_value());
}

/// A run of one GPU that takes so long for each of 101 tokens, all prompts taking none.
ServingComparison run(const char* system, std::int64_t clients, double tpot, double predicted) {
  ServingComparison c;
  c.row.model = "m";
  c.row.system = system;
  c.row.osl = 101;
  c.row.gpus = 1;
  c.row.concurrency = clients;
  c.row.ttft_ms = c.ttft_ms = 1e-9;
  c.row.tpot_ms = tpot;
  c.tpot_ms = predicted;
  return c;
}

TEST(ServingOrder, IsRightWhereTheSameSystemIsAhead) {
  // At 50 tokens/s of a user a gives 8 clients' worth and b 4; at 100 both reach, a 4 and b 2.
  ServingOrder order;
  order.add(run("a", 4, 10, 10));
  order.add(run("a", 8, 20, 21));
  order.add(run("b", 2, 10, 10));
  order.add(run("b", 4, 20, 18));
  auto pairs = order.pairs();
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs["a, b"].all, 4);  // two points of each front
  EXPECT_EQ(pairs["a, b"].right, 4);
}

TEST(ServingOrder, IsWrongWhereThePredictionTurnsItRound) {
  ServingOrder order;
  order.add(run("a", 8, 20, 20));
  order.add(run("b", 4, 20, 2));  // predicted ten times as fast: at 50 it is worth its only point
  auto pairs = order.pairs();
  EXPECT_EQ(pairs["a, b"].all, 2);
  EXPECT_EQ(pairs["a, b"].right, 0);  // 4 clients at 500 tokens/s are 2,000, above 400 of a
  ServingOrder turned;
  turned.add(run("a", 8, 20, 200));
  turned.add(run("b", 4, 20, 20));
  pairs = turned.pairs();
  EXPECT_EQ(pairs["a, b"].all, 2);
  EXPECT_EQ(pairs["a, b"].right, 0);  // a is predicted not to reach 50 at all
}

TEST(ServingOrder, DoesNotJudgeWhatIsAlike) {
  ServingOrder order;
  order.add(run("a", 100, 20, 20));
  order.add(run("b", 95, 20, 40));
  EXPECT_TRUE(order.pairs().empty());
}

}  // namespace
}  // namespace orrery
