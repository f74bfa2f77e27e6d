// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/expression.h"

namespace orrery::config {

/// A node of the tree of an expression.
struct Expression::Term {
  enum class Kind { kConstant, kName, kNot, kNegate, kMin, kMax, kBinary };
  enum class Operator {
    kOr,
    kAnd,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kRemainder
  };

  Kind kind = Kind::kConstant;
  Operator op = Operator::kAnd;
  ExpressionValue value;  ///< value of a constant
  ExpressionType type;    ///< type of constants from the start, of others once bound
  std::size_t name = 0;   ///< place in the names
  Location where;         ///< place of a name, a constant or an operator
  int length = 1;         ///< characters of it
  std::string text;       ///< text of it
  std::vector<Term> of;   ///< what it is made of
};

/// Reads text as a tree. Names are added to `names`. @return none after an error
std::optional<Expression::Term> parse_terms(const std::string& text, const Location& where,
                                            std::vector<Expression::Name>& names,
                                            Diagnostics& diagnostics);

}  // namespace orrery::config
