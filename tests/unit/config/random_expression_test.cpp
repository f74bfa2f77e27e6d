// SPDX-License-Identifier: Apache-2.0
// Expressions that are made up: evaluated as they were made, and no text that crashes the reader.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/config/expression.h"

namespace orrery::config::random_expression_test {
namespace {

/// A made-up part of an expression: its text, and what it comes to; a number that is not finite
/// comes to nothing, and so does what is made of nothing.
struct Made {
  std::string text;
  ExpressionValue value;
};

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }

  Made number(int depth) {
    if (depth == 0) {
      if (below(3) == 0) return {"a.b", 3.0};
      if (below(6) == 0) return {"nothing", std::monostate{}};
      const auto value = static_cast<double>(below(5));
      return {std::to_string(static_cast<int>(value)), value};
    }
    const Made a = number(depth - 1);
    Made b = number(depth - 1);
    const char* const signs[] = {" + ", " - ", " * ", " / ", " % "};
    const std::size_t op = below(8);
    const double* x = std::get_if<double>(&a.value);
    const double* y = std::get_if<double>(&b.value);
    // A division by numbers that come to 0 is a mistake; one by what is 0 in a place makes nothing.
    if (y != nullptr && *y == 0) b.text = "(" + b.text + ") + 0 * a.b";
    const bool known = x != nullptr && y != nullptr;
    if (op == 7) {
      ExpressionValue negative = std::monostate{};
      if (x != nullptr) negative = -*x;
      return {"-(" + a.text + ")", negative};
    }
    if (op >= 5) {
      ExpressionValue least = std::monostate{};
      if (known) least = op == 5 ? std::min(*x, *y) : std::max(*x, *y);
      return {(op == 5 ? "min(" : "max(") + a.text + ", " + b.text + ")", least};
    }
    ExpressionValue result = std::monostate{};
    if (known) {
      const double values[] = {*x + *y, *x - *y, *x * *y, *x / *y, std::fmod(*x, *y)};
      if (std::isfinite(values[op])) result = values[op];
    }
    return {"(" + a.text + ")" + signs[op] + "(" + b.text + ")", result};
  }

  Made flag(int depth) {
    if (depth == 0) return below(2) == 0 ? Made{"true", true} : Made{"yes.no", false};
    if (below(3) == 0) return comparison(depth);
    const Made a = flag(depth - 1), b = flag(depth - 1);
    const bool* x = std::get_if<bool>(&a.value);
    const bool* y = std::get_if<bool>(&b.value);
    const std::size_t op = below(3);
    if (op == 2) {
      ExpressionValue other = std::monostate{};
      if (x != nullptr) other = !*x;
      return {"not (" + a.text + ")", other};
    }
    const bool decides = op == 0;  // or: true decides; and: false does
    ExpressionValue result = std::monostate{};
    if ((x != nullptr && *x == decides) || (y != nullptr && *y == decides)) {
      result = decides;
    } else if (x != nullptr && y != nullptr) {
      result = !decides;
    }
    return {"(" + a.text + ")" + (decides ? " or " : " and ") + "(" + b.text + ")", result};
  }

  Made comparison(int depth) {
    const Made a = number(depth - 1), b = number(depth - 1);
    const double* x = std::get_if<double>(&a.value);
    const double* y = std::get_if<double>(&b.value);
    const char* const signs[] = {" == ", " != ", " < ", " <= ", " > ", " >= "};
    const std::size_t op = below(6);
    ExpressionValue result = std::monostate{};
    if (x != nullptr && y != nullptr) {
      const bool values[] = {*x == *y, *x != *y, *x<*y, *x <= *y, *x> * y, *x >= *y};
      result = values[op];
    }
    return {a.text + signs[op] + b.text, result};
  }

 private:
  std::mt19937 random_;
};

std::optional<ExpressionType> type_of(const std::string& name) {
  if (name == "a.b" || name == "nothing") return ExpressionType{};
  if (name == "yes.no") return ExpressionType{ExpressionType::Kind::kFlag};
  return std::nullopt;
}

std::optional<Expression> read(const std::string& text, Diagnostics& diagnostics) {
  auto expression = Expression::parse(text, {"sweep.yaml", 1, 1}, diagnostics);
  if (!expression || !expression->bind(type_of, {"a.b"}, diagnostics)) return std::nullopt;
  return expression;
}

bool holds(const Expression& expression) {
  return expression.holds([&](std::size_t i) -> ExpressionValue {
    const std::string& name = expression.names()[i].path;
    if (name == "a.b") return 3.0;
    if (name == "yes.no") return false;
    return std::monostate{};
  });
}

TEST(RandomExpression, ComesToWhatItWasMadeOf) {
  Maker maker(11);
  int held = 0;
  for (int i = 0; i < 3000; ++i) {
    const Made made = maker.flag(1 + static_cast<int>(maker.below(4)));
    Diagnostics diagnostics;
    const auto expression = read(made.text, diagnostics);
    ASSERT_TRUE(expression.has_value()) << made.text << "\n" << diagnostics.render();
    const bool* value = std::get_if<bool>(&made.value);
    ASSERT_EQ(holds(*expression), value != nullptr && *value) << made.text;
    held += holds(*expression) ? 1 : 0;
  }
  EXPECT_GT(held, 500);
  EXPECT_LT(held, 2500);
}

TEST(RandomExpression, ASpoiltTextIsRefusedOrReadAndNeverACrash) {
  Maker maker(12);
  const std::string alphabet = "ab.019 <>=!+-*/%(),'\"eEGBs[]&|\t\x80\xff";
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = maker.flag(3).text;
    for (std::size_t change = 0; change <= maker.below(4); ++change) {
      const std::size_t at = maker.below(text.size());
      const char c = alphabet[maker.below(alphabet.size())];
      if (maker.below(3) == 0) {
        text.erase(at, 1 + maker.below(5));
      } else if (maker.below(2) == 0) {
        text.insert(at, 1, c);
      } else {
        text[at] = c;
      }
      if (text.empty()) text = "x";
    }
    Diagnostics diagnostics;
    const auto expression = read(text, diagnostics);
    EXPECT_EQ(expression.has_value(), !diagnostics.has_errors()) << text;
    if (expression) holds(*expression);
    refused += expression ? 0 : 1;
  }
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace orrery::config::random_expression_test
