// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_order.h"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::serving_order_test {
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

TEST(ServingOrder, TellsWhatItJudged) {
  // 2 clients at 100 tokens/s of each and 8 at 50: 200 and 400 tokens/s, between them a straight
  // line in logarithms, at sqrt(100 * 50) the root of 200 * 400. b gives its 3 clients 70.7 each,
  // 212 together; it is predicted to give 50 each, and does not reach 70.7.
  ServingOrder order;
  order.add(run("a", 2, 10, 10));
  order.add(run("a", 8, 20, 20));
  order.add(run("b", 3, std::sqrt(200.0), 20));
  const auto judged = order.judged();
  ASSERT_EQ(judged.size(), 1U);               // a's points are outside of b's front
  EXPECT_EQ(judged[0].runs, "m 0 101 bf16");  // the runs name no precision
  EXPECT_EQ(judged[0].first, "a");
  EXPECT_NEAR(judged[0].user, 70.7107, 1e-3);
  EXPECT_NEAR(judged[0].measured_first, std::sqrt(200 * 400) * 1.01,
              1e-3);  // 101 tokens in 100 gaps
  EXPECT_NEAR(judged[0].measured_second, 212.132 * 1.01, 1e-3);
  EXPECT_NEAR(judged[0].predicted_first.value(), std::sqrt(200 * 400) * 1.01, 1e-3);
  EXPECT_FALSE(judged[0].predicted_second.has_value());
  EXPECT_TRUE(judged[0].right());  // b, which does not reach, is behind
}

TEST(ServingOrder, IsWrongWhereNeitherReaches) {
  ServingOrder order;
  order.add(run("a", 8, 20, 21));
  order.add(run("b", 4, 20, 22));
  const auto judged = order.judged();
  ASSERT_EQ(judged.size(), 2U);  // at 50 tokens/s, a point of both
  EXPECT_FALSE(judged[0].right());
  EXPECT_FALSE(judged[1].right());
}

TEST(ServingOrder, KeepsPrecisionsApart) {
  // a gives twice as much as b at 50 tokens/s, but in another precision.
  ServingComparison fp8 = run("a", 8, 20, 20), none = run("b", 4, 20, 20), bf16 = none;
  fp8.row.precision = "fp8";
  bf16.row.system = "a";
  bf16.row.concurrency = 8;
  bf16.row.precision = "bf16";
  ServingOrder order;
  order.add(fp8);
  order.add(none);
  EXPECT_TRUE(order.judged().empty());
  order.add(bf16);  // what names no precision runs in bf16
  EXPECT_EQ(order.judged().size(), 2U);
}

TEST(ServingOrder, DoesNotJudgeWhatIsAlike) {
  ServingOrder order;
  order.add(run("a", 100, 20, 20));
  order.add(run("b", 95, 20, 40));
  EXPECT_TRUE(order.pairs().empty());
}

}  // namespace
}  // namespace orrery::serving_order_test
