// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/units/quantity.h"

namespace orrery::config {

/// What a name in an expression stands for.
struct ExpressionType {
  enum class Kind { kNumber, kFlag, kWord };
  Kind kind = Kind::kNumber;
  Dimension dimension = {};             ///< dimension of a number
  std::vector<std::string> words = {};  ///< all that a word may be; empty: any
  /// SI base units that a number without a unit stands for beside it, as the name of a metric says
  /// (1e-3 of p99_ttft_ms); 0: the name has no unit, so that such a number is a mistake.
  double bare = 0;
};

/// The value of a name: a number in SI base units, a flag, a word, or nothing where a thing has no
/// such value.
using ExpressionValue = std::variant<std::monostate, double, bool, std::string>;

/// A condition on things that have named values:
/// @code
///   or:         and ("or" and)*
///   and:        not ("and" not)*
///   not:        "not" not | comparison
///   comparison: sum (("==" | "!=" | "<" | "<=" | ">" | ">=") sum)?
///   sum:        product (("+" | "-") product)*
///   product:    sign (("*" | "/" | "%") sign)*
///   sign:       "-" sign | primary
///   primary:    number unit? | name | 'word' | "true" | "false" | "(" or ")"
///               | ("min" | "max") "(" or ("," or)* ")"
///   name:       letters, digits, '_' and '.': parallel.tp
/// @endcode
/// A unit follows its number ("50 ms", "8 TB/s", "5 /s"), or k, M, G or T at once ("15T"). A word
/// that is compared with one needs no quotes. What cannot be compared, added or is neither true nor
/// false is found before anything is asked. Nothing makes nothing, as in SQL: `not (x > 1)` does
/// not hold where there is no x.
class Expression {
 public:
  /// A name as it first stands in the text.
  struct Name {
    std::string path;
    Location where;
    int length = 0;
  };

  /// @param where the place of the first character of the text, for messages
  /// @return none after an error
  static std::optional<Expression> parse(const std::string& text, const Location& where,
                                         Diagnostics& diagnostics);

  /// All names, each once.
  const std::vector<Name>& names() const;

  /// What names stand for, before the first evaluation. An unknown name that is compared with a
  /// word is one; others are errors.
  /// @param type_of none for an unknown name
  /// @param known names to suggest
  /// @return false after an error
  bool bind(const std::function<std::optional<ExpressionType>(const std::string& path)>& type_of,
            const std::vector<std::string>& known, Diagnostics& diagnostics);

  /// Whether a name is used, once it is bound: one that is a word is not.
  bool is_word(std::size_t name) const;

  /// Whether it holds. @param value_of the value of a name by its place in names()
  bool holds(const std::function<ExpressionValue(std::size_t name)>& value_of) const;

  struct Term;

 private:
  struct Parsed;
  std::shared_ptr<Parsed> parsed_;
};

}  // namespace orrery::config
