// SPDX-License-Identifier: Apache-2.0
#include "sim/config/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace orrery::config::expression_test {
namespace {

using testing::HasSubstr;

/// A thing with some values, and none of what it does not have.
const std::map<std::string, ExpressionValue> kThing = {
    {"parallel.tp", 8.0},  {"parallel.pp", 4.0},          {"nodes", 4.0},
    {"step_time_s", 0.05}, {"memory.fits", true},         {"precision", std::string("fp8")},
    {"bandwidth", 8e12},   {"nothing", std::monostate{}}, {"rate", 5.0}};

std::optional<ExpressionType> type_of(const std::string& path) {
  using Kind = ExpressionType::Kind;
  if (path == "step_time_s") return ExpressionType{Kind::kNumber, {.time = 1}};
  if (path == "bandwidth") return ExpressionType{Kind::kNumber, {.time = -1, .data = 1}};
  if (path == "rate") return ExpressionType{Kind::kNumber, {.time = -1}};
  if (path == "memory.fits") return ExpressionType{Kind::kFlag, {}};
  if (path == "precision") return ExpressionType{Kind::kWord, {}};
  if (kThing.count(path) == 0) return std::nullopt;
  return ExpressionType{};
}

/// Messages about an expression, as users see them; empty: it is right.
std::string errors_of(const std::string& text, std::optional<Expression>* made = nullptr) {
  Diagnostics diagnostics;
  diagnostics.add_source("sweep.yaml", "    " + text);
  auto expression = Expression::parse(text, {"sweep.yaml", 1, 5}, diagnostics);
  if (expression) expression->bind(type_of, {"parallel.tp", "parallel.pp", "nodes"}, diagnostics);
  if (made != nullptr) *made = expression;
  return diagnostics.render();
}

bool holds(const std::string& text) {
  std::optional<Expression> expression;
  EXPECT_EQ(errors_of(text, &expression), "") << text;
  return expression->holds(
      [&](std::size_t name) { return kThing.at(expression->names()[name].path); });
}

TEST(Expression, ComparesNumbersWordsAndFlags) {
  EXPECT_TRUE(holds("parallel.tp == 8"));
  EXPECT_FALSE(holds("parallel.tp < 8"));
  EXPECT_TRUE(holds("parallel.tp <= 8 and parallel.tp >= 8"));
  EXPECT_TRUE(holds("memory.fits"));
  EXPECT_FALSE(holds("not memory.fits"));
  EXPECT_TRUE(holds("memory.fits == true"));
  EXPECT_TRUE(holds("precision == 'fp8' and precision != \"bf16\""));
  EXPECT_TRUE(holds("precision == fp8"));
  EXPECT_TRUE(holds("bf16 != precision"));
}

TEST(Expression, CalculatesWithTheUsualPrecedence) {
  EXPECT_TRUE(holds("parallel.tp * parallel.pp == nodes * 8"));
  EXPECT_TRUE(holds("2 + 3 * 4 == 14"));
  EXPECT_TRUE(holds("(2 + 3) * 4 == 20"));
  EXPECT_TRUE(holds("10 - 4 - 3 == 3"));
  EXPECT_TRUE(holds("-parallel.tp + 10 == 2"));
  EXPECT_TRUE(holds("parallel.tp % 3 == 2"));
  EXPECT_TRUE(holds("8 / 4 / 2 == 1"));
  EXPECT_TRUE(holds("min(parallel.tp, parallel.pp, 5) == 4 and max(1, 2) == 2"));
  EXPECT_TRUE(holds("false or not false and true"));
  EXPECT_TRUE(holds("not (true and false)"));
}

TEST(Expression, TakesUnitsAndTheirProducts) {
  EXPECT_TRUE(holds("step_time_s == 50 ms"));
  EXPECT_TRUE(holds("step_time_s < 0.0500001 s and step_time_s > 49.9ms"));
  EXPECT_TRUE(holds("bandwidth == 8 TB/s"));
  EXPECT_TRUE(holds("bandwidth * step_time_s == 400 GB"));
  EXPECT_TRUE(holds("bandwidth / 4 >= 2 TB/s"));
  EXPECT_TRUE(holds("rate == 5 /s"));
  EXPECT_TRUE(holds("parallel.tp/parallel.pp == 2"));
  EXPECT_TRUE(holds("max(step_time_s, 10 ms) == 50 ms"));
  EXPECT_TRUE(holds("4 kg CO2 == 4000 gCO2 and 2 t CO2/1 MWh == 2000 gCO2/kWh"));
}

TEST(Expression, NothingMakesNothing) {
  EXPECT_FALSE(holds("nothing > 1"));
  EXPECT_FALSE(holds("not (nothing > 1)"));
  EXPECT_TRUE(holds("nothing > 1 or memory.fits"));
  EXPECT_TRUE(holds("not (nothing > 1 and not memory.fits)"));
  EXPECT_FALSE(holds("1 / (0 * parallel.tp) > 1"));
  EXPECT_FALSE(holds("min(nothing, 1) == 1"));
}

// `tokens_per_s / ranks >= 2` has the unit of tokens_per_s.
TEST(Expression, ANumberHasTheUnitOfAQuotientOfNamesBesideIt) {
  for (const char* text : {"ttft_ms / 2 <= 1k", "ttft_ms + ttft_ms <= 4k", "2 * ttft_ms <= 4000",
                           "ttft_ms / ttft_ms < 2"}) {
    Diagnostics diagnostics;
    auto expression = Expression::parse(text, {"--where", 1, 1}, diagnostics);
    ASSERT_TRUE(expression) << text;
    const auto type = [](const std::string&) -> std::optional<ExpressionType> {
      return ExpressionType{ExpressionType::Kind::kNumber, {.time = 1}, {}, 1e-3};
    };
    ASSERT_TRUE(expression->bind(type, {"ttft_ms"}, diagnostics)) << text;
    EXPECT_TRUE(expression->holds([](std::size_t) { return ExpressionValue(1.9); })) << text;
  }
}

// p99_ttft_ms says its unit; a path of the configuration does not.
TEST(Expression, ANumberHasTheUnitOfTheNameBesideIt) {
  for (const char* text : {"ttft_ms <= 2000", "ttft_ms <= 2 s", "2000 >= ttft_ms"}) {
    Diagnostics diagnostics;
    auto expression = Expression::parse(text, {"--where", 1, 1}, diagnostics);
    ASSERT_TRUE(expression) << text;
    const auto type = [](const std::string&) -> std::optional<ExpressionType> {
      return ExpressionType{ExpressionType::Kind::kNumber, {.time = 1}, {}, 1e-3};
    };
    ASSERT_TRUE(expression->bind(type, {"ttft_ms"}, diagnostics)) << text;
    EXPECT_TRUE(expression->holds([](std::size_t) { return ExpressionValue(1.9); })) << text;
    EXPECT_FALSE(expression->holds([](std::size_t) { return ExpressionValue(2.1); })) << text;
  }
}

TEST(Expression, PointsAtMistakes) {
  const std::pair<const char*, const char*> cases[] = {
      {"paralel.tp == 8", "sweep.yaml:1:5: error: unknown name 'paralel.tp'"},
      {"nodes = 8", "sweep.yaml:1:11: error: expected an operator, or the end, got '='"},
      {"nodes == ", "1:14: error: the expression ends where a name or a number is expected"},
      {"step_time_s < 50", "1:19: error: a duration and a number cannot be compared"},
      {"step_time_s < 50 GB", "1:19: error: a duration and a data size cannot be compared"},
      {"step_time_s < 50 mss", "1:22: error: unknown unit 'mss'"},
      {"nodes + 1", "1:11: error: the expression has to be a condition, and '+' is a number"},
      {"nodes and memory.fits", "1:5: error: 'and' needs a condition, and 'nodes' is a number"},
      {"1 < nodes < 8", "1:15: error: comparisons do not chain"},
      {"(nodes > 1", "1:15: error: the expression ends where ')' is expected"},
      {"precision == 'fp8", "1:18: error: the quotes do not end"},
      {"precision < fp8", "unknown name 'fp8'"},
      {"min(nodes, step_time_s) > 1", "cannot be compared"},
      {"007 < nodes", "1:5: error: '007' starts with 0, which is octal to some readers"},
      {"", "the expression ends where a name or a number is expected"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_THAT(errors_of(text), HasSubstr(message)) << text;
  EXPECT_THAT(errors_of("paralel.tp == 8"), HasSubstr("did you mean 'parallel.tp'?"));
  EXPECT_THAT(errors_of("nodes = 8"), HasSubstr("'=='"));
  EXPECT_THAT(errors_of("step_time_s < 50"), HasSubstr("'50 s'"));
}

TEST(Expression, EndsForAnyNesting) {
  EXPECT_THAT(errors_of(std::string(100000, '(') + "nodes"), HasSubstr("nests too deeply"));
  std::string sum = "1";
  for (int i = 0; i < 100000; ++i) sum += " + 1";
  EXPECT_THAT(errors_of(sum + " > 1"), HasSubstr("too long"));
  std::string nots;
  for (int i = 0; i < 100000; ++i) nots += "not ";
  EXPECT_THAT(errors_of(nots + "memory.fits"), HasSubstr("nests too deeply"));
}

}  // namespace
}  // namespace orrery::config::expression_test
