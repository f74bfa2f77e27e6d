// SPDX-License-Identifier: Apache-2.0
#include "sim/config/expression.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/config/expression_terms.h"
#include "sim/config/leaf.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"
#include "sim/units/unit_table.h"

namespace orrery::config {

struct Expression::Parsed {
  Term root;
  std::vector<Name> names;
  std::vector<bool> words;  ///< names that are words, once bound
};

namespace {

using Term = Expression::Term;
using Operator = Term::Operator;
using Kind = ExpressionType::Kind;

bool is_comparison(Operator op) { return op >= Operator::kEqual && op <= Operator::kGreaterEqual; }
bool is_logical(Operator op) { return op == Operator::kOr || op == Operator::kAnd; }

using ValueOf = std::function<ExpressionValue(std::size_t)>;

ExpressionValue evaluate(const Term& term, const ValueOf& value_of);

/// Whether a number that is made of constants alone is 0.
bool is_always_zero(const Term& term) {
  const ExpressionValue value = evaluate(term, [](std::size_t) { return std::monostate{}; });
  const double* number = std::get_if<double>(&value);
  return number != nullptr && *number == 0;
}

/// "a bandwidth", "a number", "a flag".
std::string described(const ExpressionType& type) {
  if (type.kind == Kind::kFlag) return "a flag";
  if (type.kind == Kind::kWord) return "a word";
  if (type.dimension == Dimension{}) return "a number";
  return find_dimension(type.dimension) != nullptr ? "a " + dimension_name(type.dimension)
                                                   : "a number with a unit";
}

/// Gives every term its type, and finds what cannot be.
class Binder {
 public:
  Binder(std::vector<std::optional<ExpressionType>> types, const std::vector<std::string>& known,
         Diagnostics& diagnostics)
      : types_(std::move(types)), known_(known), diagnostics_(diagnostics) {}

  /// @return false after an error below the term
  bool bind(Term& term) {
    switch (term.kind) {
      case Term::Kind::kConstant:
        return true;
      case Term::Kind::kName:
        return bind_name(term);
      case Term::Kind::kNot:
        term.type.kind = Kind::kFlag;
        return bind(term.of[0]) && require(term.of[0], Kind::kFlag, "'not' needs");
      case Term::Kind::kNegate:
        if (!bind(term.of[0]) || !require(term.of[0], Kind::kNumber, "'-' needs")) return false;
        term.type = term.of[0].type;
        return true;
      case Term::Kind::kMin:
      case Term::Kind::kMax:
        return bind_least(term);
      default:
        return bind_binary(term);
    }
  }

  bool require(const Term& term, Kind kind, const std::string& who) {
    if (term.type.kind == kind) return true;
    const char* wanted = kind == Kind::kFlag ? " a condition" : " a number";
    return error(term, who + wanted + ", and '" + term.text + "' is " + described(term.type));
  }

 private:
  bool error(const Term& term, std::string message, std::string suggestion = {}) {
    diagnostics_.error(term.where, term.length, std::move(message), std::move(suggestion));
    return false;
  }

  bool bind_name(Term& term) {
    if (types_[term.name]) {
      term.type = *types_[term.name];
      return true;
    }
    return error(term, "unknown name '" + term.text + "'", nearest_name(term.text, known_));
  }

  /// A number without a unit beside a quantity: the unit was forgotten.
  static std::string with_unit(const Term& term, Dimension dimension) {
    const bool plain = term.kind == Term::Kind::kConstant && find_dimension(dimension) != nullptr;
    return plain ? term.text + " " + base_unit(dimension) : std::string();
  }

  /// `p99_ttft_ms <= 2000`: a number has the unit of the name beside it.
  static void take_unit(Term& number, const Term& other) {
    if (number.kind != Term::Kind::kConstant || number.type.kind != Kind::kNumber ||
        number.type.dimension != Dimension{} || other.type.kind != Kind::kNumber ||
        other.type.bare == 0)
      return;
    number.value = std::get<double>(number.value) * other.type.bare;
    number.type.dimension = other.type.dimension;
  }

  /// The unit of a number that has none and is compared with a term: `tokens_per_s / ranks >= 2`
  /// has the unit of tokens_per_s.
  static double bare_of(const Term& term) {
    return term.type.dimension == Dimension{} ? 1 : term.type.bare;
  }

  bool same(Term& a, Term& b, const std::string& verb) {
    take_unit(a, b);
    take_unit(b, a);
    if (a.type.kind == b.type.kind && a.type.dimension == b.type.dimension) return true;
    const bool first = a.type.dimension == Dimension{} && a.type.kind == Kind::kNumber &&
                       b.type.kind == Kind::kNumber;
    const Term& wrong = first ? a : b;
    const Term& other = first ? b : a;
    const bool unit = wrong.type.kind == Kind::kNumber && wrong.type.dimension == Dimension{} &&
                      other.type.kind == Kind::kNumber;
    return error(wrong,
                 described(a.type) + " and " + described(b.type) + " cannot be " + verb + ": '" +
                     a.text + "' and '" + b.text + "'",
                 unit ? with_unit(wrong, other.type.dimension) : "");
  }

  bool bind_least(Term& term) {
    for (Term& of : term.of) {
      if (!bind(of) || !require(of, Kind::kNumber, "'" + term.text + "' needs")) return false;
      if (!same(term.of[0], of, "compared")) return false;
    }
    term.type = term.of[0].type;
    return true;
  }

  /// `system.name == gb200`: gb200 is a word where it is no name.
  void make_word(Term& term, const Term& other) {
    if (term.kind != Term::Kind::kName || types_[term.name]) return;
    const bool beside_word =
        (other.kind == Term::Kind::kName && types_[other.name] &&
         types_[other.name]->kind == Kind::kWord) ||
        (other.kind == Term::Kind::kConstant && other.type.kind == Kind::kWord);
    if (!beside_word) return;
    term.kind = Term::Kind::kConstant;
    term.type.kind = Kind::kWord;
    term.value = term.text;
  }

  /// A word that a name never has is a slip.
  bool may_be(const Term& word, const Term& name) {
    const std::vector<std::string>& words = name.type.words;
    if (word.kind != Term::Kind::kConstant || words.empty()) return true;
    const std::string& text = std::get<std::string>(word.value);
    if (std::find(words.begin(), words.end(), text) != words.end()) return true;
    return error(word,
                 "'" + name.text + "' is never '" + text + "', but one of " + comma_joined(words),
                 nearest_name(text, words));
  }

  bool bind_binary(Term& term) {
    Term& a = term.of[0];
    Term& b = term.of[1];
    if (term.op == Operator::kEqual || term.op == Operator::kNotEqual) {
      make_word(a, b);
      make_word(b, a);
    }
    const bool left = bind(a);
    if (!bind(b) || !left) return false;
    const std::string who = "'" + term.text + "' needs";
    if (is_logical(term.op)) {
      term.type.kind = Kind::kFlag;
      return require(a, Kind::kFlag, who) && require(b, Kind::kFlag, who);
    }
    if (is_comparison(term.op)) {
      term.type.kind = Kind::kFlag;
      const bool equality = term.op == Operator::kEqual || term.op == Operator::kNotEqual;
      if (!same(a, b, "compared") || !(equality || require(a, Kind::kNumber, who))) return false;
      return may_be(a, b) && may_be(b, a);
    }
    if (!require(a, Kind::kNumber, who) || !require(b, Kind::kNumber, who)) return false;
    const bool divides = term.op == Operator::kDivide || term.op == Operator::kRemainder;
    if (divides && is_always_zero(b)) return error(term, "a division by 0");
    if (term.op == Operator::kMultiply) {
      term.type.dimension = a.type.dimension + b.type.dimension;
      term.type.bare = bare_of(a) * bare_of(b);
    } else if (term.op == Operator::kDivide) {
      term.type.dimension = a.type.dimension - b.type.dimension;
      term.type.bare = bare_of(b) == 0 ? 0 : bare_of(a) / bare_of(b);
    } else {
      if (!same(a, b, term.op == Operator::kRemainder ? "divided" : "added")) return false;
      term.type.dimension = a.type.dimension;
      term.type.bare = bare_of(a);
    }
    return true;
  }

  std::vector<std::optional<ExpressionType>> types_;
  const std::vector<std::string>& known_;
  Diagnostics& diagnostics_;
};

double arithmetic(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSubtract:
      return a - b;
    case Operator::kMultiply:
      return a * b;
    case Operator::kDivide:
      return a / b;
    default:
      return std::fmod(a, b);
  }
}

template <class T>
bool compare(Operator op, const T& a, const T& b) {
  switch (op) {
    case Operator::kEqual:
      return a == b;
    case Operator::kNotEqual:
      return a != b;
    case Operator::kLess:
      return a < b;
    case Operator::kLessEqual:
      return a <= b;
    case Operator::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

bool is_nothing(const ExpressionValue& value) {
  return std::holds_alternative<std::monostate>(value);
}

/// Three values, as in SQL: what is decided by one side does not need the other.
ExpressionValue logical(const Term& term, const ValueOf& value_of) {
  const bool decides = term.op == Operator::kOr;
  const ExpressionValue a = evaluate(term.of[0], value_of);
  if (!is_nothing(a) && std::get<bool>(a) == decides) return decides;
  const ExpressionValue b = evaluate(term.of[1], value_of);
  if (!is_nothing(b) && std::get<bool>(b) == decides) return decides;
  if (is_nothing(a) || is_nothing(b)) return std::monostate{};
  return !decides;
}

ExpressionValue binary(const Term& term, const ValueOf& value_of) {
  if (is_logical(term.op)) return logical(term, value_of);
  const ExpressionValue a = evaluate(term.of[0], value_of);
  const ExpressionValue b = evaluate(term.of[1], value_of);
  if (is_nothing(a) || is_nothing(b)) return std::monostate{};
  if (is_comparison(term.op)) return compare(term.op, a, b);
  const double result = arithmetic(term.op, std::get<double>(a), std::get<double>(b));
  if (!std::isfinite(result)) return std::monostate{};  // a division by nothing
  return result;
}

ExpressionValue least(const Term& term, const ValueOf& value_of) {
  std::optional<double> found;
  for (const Term& of : term.of) {
    ExpressionValue value = evaluate(of, value_of);
    if (is_nothing(value)) return value;
    const double number = std::get<double>(value);
    const bool better =
        !found || (term.kind == Term::Kind::kMin ? number < *found : number > *found);
    if (better) found = number;
  }
  return *found;
}

ExpressionValue evaluate(const Term& term, const ValueOf& value_of) {
  switch (term.kind) {
    case Term::Kind::kConstant:
      return term.value;
    case Term::Kind::kName:
      return value_of(term.name);
    case Term::Kind::kBinary:
      return binary(term, value_of);
    case Term::Kind::kMin:
    case Term::Kind::kMax:
      return least(term, value_of);
    default:
      break;
  }
  ExpressionValue of = evaluate(term.of[0], value_of);
  if (is_nothing(of)) return of;
  if (term.kind == Term::Kind::kNot) return !std::get<bool>(of);
  return -std::get<double>(of);
}

}  // namespace

std::optional<Expression> Expression::parse(const std::string& text, const Location& where,
                                            Diagnostics& diagnostics) {
  Expression expression;
  expression.parsed_ = std::make_shared<Parsed>();
  auto root = parse_terms(text, where, expression.parsed_->names, diagnostics);
  if (!root) return std::nullopt;
  expression.parsed_->root = std::move(*root);
  return expression;
}

const std::vector<Expression::Name>& Expression::names() const { return parsed_->names; }

bool Expression::bind(
    const std::function<std::optional<ExpressionType>(const std::string& path)>& type_of,
    const std::vector<std::string>& known, Diagnostics& diagnostics) {
  std::vector<std::optional<ExpressionType>> types;
  parsed_->words.clear();
  for (const Name& name : parsed_->names) {
    types.push_back(type_of(name.path));
    parsed_->words.push_back(!types.back());
  }
  Binder binder(std::move(types), known, diagnostics);
  return binder.bind(parsed_->root) &&
         binder.require(parsed_->root, Kind::kFlag, "the expression has to be");
}

bool Expression::is_word(std::size_t name) const { return parsed_->words.at(name); }

bool Expression::holds(const std::function<ExpressionValue(std::size_t name)>& value_of) const {
  const ExpressionValue value = evaluate(parsed_->root, value_of);
  const bool* flag = std::get_if<bool>(&value);
  return flag != nullptr && *flag;
}

}  // namespace orrery::config
