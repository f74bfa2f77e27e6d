// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "sim/config/expression_terms.h"
#include "sim/units/text.h"
#include "sim/units/unit_table.h"

namespace orrery::config {
namespace {

using Term = Expression::Term;
using Operator = Term::Operator;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

/// An error was found and is reported.
struct Stop {};

/// Operators of a level, longer ones before those that they begin with.
using Operators = std::vector<std::pair<std::string_view, Operator>>;

const Operators kComparisons = {{"==", Operator::kEqual},     {"!=", Operator::kNotEqual},
                                {"<=", Operator::kLessEqual}, {">=", Operator::kGreaterEqual},
                                {"<", Operator::kLess},       {">", Operator::kGreater}};
const Operators kAlternatives = {{"or", Operator::kOr}};
const Operators kConjunctions = {{"and", Operator::kAnd}};
const Operators kSums = {{"+", Operator::kAdd}, {"-", Operator::kSubtract}};
const Operators kProducts = {
    {"*", Operator::kMultiply}, {"/", Operator::kDivide}, {"%", Operator::kRemainder}};

class Parser {
 public:
  Parser(const std::string& text, Location where, std::vector<Expression::Name>& names,
         Diagnostics& diagnostics)
      : text_(text), where_(std::move(where)), names_(names), diagnostics_(diagnostics) {}

  Term whole() {
    Term term = either();
    skip_spaces();
    if (at_ < text_.size()) unexpected("an operator, or the end");
    return term;
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::size_t length, std::string message,
                         std::string suggestion = {}) {
    diagnostics_.error(place(at), static_cast<int>(std::max<std::size_t>(1, length)),
                       std::move(message), std::move(suggestion));
    throw Stop{};
  }

  [[noreturn]] void unexpected(const std::string& expected) {
    skip_spaces();
    if (at_ >= text_.size()) fail(at_, 1, "the expression ends where " + expected + " is expected");
    std::size_t end = at_ + 1;
    while (end < text_.size() && is_word(text_[at_]) && is_word(text_[end])) ++end;
    const std::string found = text_.substr(at_, end - at_);
    std::string suggestion;
    if (found == "=") suggestion = "==";
    if (found == "&") suggestion = "and";
    if (found == "|") suggestion = "or";
    if (found == "!") suggestion = "not";
    fail(at_, end - at_, "expected " + expected + ", got '" + found + "'", suggestion);
  }

  Location place(std::size_t at) const {
    return {where_.file, where_.line, where_.line > 0 ? where_.column + static_cast<int>(at) : 0};
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  /// Takes a mark such as "<=" or "(".
  bool take(std::string_view mark) {
    skip_spaces();
    if (text_.compare(at_, mark.size(), mark) != 0) return false;
    at_ += mark.size();
    return true;
  }

  bool take_keyword(std::string_view word) {
    skip_spaces();
    const std::size_t end = at_ + word.size();
    if (text_.compare(at_, word.size(), word) != 0) return false;
    if (end < text_.size() && (is_word(text_[end]) || text_[end] == '.')) return false;
    at_ = end;
    return true;
  }

  Term binary(Operator op, std::size_t at, std::size_t length, Term left, Term right) {
    constexpr int kMostOperators = 1000;  // chains are as deep as they are long
    if (++operators_ > kMostOperators) fail(at, length, "the expression is too long");
    Term term;
    term.kind = Term::Kind::kBinary;
    term.op = op;
    mark(term, at, length);
    term.of.push_back(std::move(left));
    term.of.push_back(std::move(right));
    return term;
  }

  void mark(Term& term, std::size_t at, std::size_t length) const {
    term.where = place(at);
    term.length = static_cast<int>(length);
    term.text = text_.substr(at, length);
  }

  /// Operators of one level, from left to right, between operands of the next.
  Term chain(Term (Parser::*operand)(), const Operators& operators) {
    Term left = (this->*operand)();
    while (const auto* op = take_one(operators)) {
      const std::size_t length = op->first.size(), at = at_ - length;
      left = binary(op->second, at, length, std::move(left), (this->*operand)());
    }
    return left;
  }

  Term either() { return chain(&Parser::both, kAlternatives); }
  Term both() { return chain(&Parser::negation, kConjunctions); }
  Term sum() { return chain(&Parser::product, kSums); }
  Term product() { return chain(&Parser::sign, kProducts); }

  Term prefixed(Term::Kind kind, std::size_t length, Term of) {
    Term term;
    term.kind = kind;
    mark(term, at_, 0);
    term.where = of.where;
    term.length = static_cast<int>(length);
    term.of.push_back(std::move(of));
    return term;
  }

  Term negation() {
    const Depth depth(*this);
    if (take_keyword("not")) return prefixed(Term::Kind::kNot, 1, negation());
    return comparison();
  }

  /// The operator of a level that stands here.
  const std::pair<std::string_view, Operator>* take_one(const Operators& operators) {
    for (const auto& candidate : operators)
      if (is_letter(candidate.first[0]) ? take_keyword(candidate.first) : take(candidate.first))
        return &candidate;
    return nullptr;
  }

  Term comparison() {
    Term left = sum();
    const auto* op = take_one(kComparisons);
    if (op == nullptr) return left;
    const std::size_t at = at_ - op->first.size();
    Term term = binary(op->second, at, op->first.size(), std::move(left), sum());
    if (const auto* second = take_one(kComparisons))
      fail(at_ - second->first.size(), second->first.size(),
           "comparisons do not chain: write `a < b and b < c`");
    return term;
  }

  Term sign() {
    const Depth depth(*this);
    if (take("-")) return prefixed(Term::Kind::kNegate, 1, sign());
    return primary();
  }

  Term primary() {
    skip_spaces();
    if (at_ >= text_.size()) unexpected("a name or a number");
    const char c = text_[at_];
    if (is_digit(c) || c == '.') return number();
    if (c == '\'' || c == '"') return quoted();
    if (take("(")) {
      Term inner = either();
      if (!take(")")) unexpected("')'");
      return inner;
    }
    for (const bool flag : {true, false}) {
      const std::size_t at = at_;
      if (!take_keyword(flag ? "true" : "false")) continue;
      return constant(at, flag, {ExpressionType::Kind::kFlag, {}});
    }
    for (const auto kind : {Term::Kind::kMin, Term::Kind::kMax}) {
      const std::size_t at = at_;
      if (take_keyword(kind == Term::Kind::kMin ? "min" : "max")) return least(kind, at);
    }
    if (is_letter(c)) return name();
    unexpected("a name or a number");
  }

  Term constant(std::size_t at, ExpressionValue value, ExpressionType type) const {
    Term term;
    term.value = std::move(value);
    term.type = std::move(type);
    mark(term, at, at_ - at);
    return term;
  }

  Term least(Term::Kind kind, std::size_t at) {
    Term term;
    term.kind = kind;
    mark(term, at, at_ - at);
    if (!take("(")) unexpected("'('");
    do {
      term.of.push_back(either());
    } while (take(","));
    if (!take(")")) unexpected("',' or ')'");
    return term;
  }

  Term quoted() {
    const std::size_t at = at_;
    const std::size_t end = text_.find(text_[at], at + 1);
    if (end == std::string::npos) fail(at, text_.size() - at, "the quotes do not end");
    at_ = end + 1;
    return constant(at, text_.substr(at + 1, end - at - 1), {ExpressionType::Kind::kWord, {}});
  }

  Term name() {
    const std::size_t at = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.')) ++at_;
    Term term;
    term.kind = Term::Kind::kName;
    mark(term, at, at_ - at);
    if (term.text.back() == '.') fail(at, at_ - at, "the name '" + term.text + "' has no end");
    for (const char* word : {"and", "or", "not"})
      if (term.text == word)
        fail(at, at_ - at, "'" + term.text + "' stands where a value is expected");
    const auto known = std::find_if(names_.begin(), names_.end(),
                                    [&](const auto& other) { return other.path == term.text; });
    term.name = static_cast<std::size_t>(known - names_.begin());
    if (known == names_.end()) names_.push_back({term.text, term.where, term.length});
    return term;
  }

  /// Where a number that begins here ends.
  std::size_t number_end() const {
    std::size_t end = at_;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) ++end;
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        end = exponent;
        while (end < text_.size() && is_digit(text_[end])) ++end;
      }
    }
    return end;
  }

  std::size_t word_end(std::size_t begin) const {
    while (begin < text_.size() && is_word(text_[begin])) ++begin;
    return begin;
  }

  /// Where the first part of a unit ends: letters, or the longest of a word and two words that is a
  /// unit ("gCO2", "kg CO2").
  std::size_t simple_unit_end(std::size_t begin) const {
    const std::size_t word = word_end(begin);
    const std::size_t second = word_end(std::min(word + 1, text_.size()));
    const bool blank = word < text_.size() && text_[word] == ' ';
    if (blank && find_unit(text_.substr(begin, second - begin))) return second;
    if (find_unit(text_.substr(begin, word - begin))) return word;
    while (begin < text_.size() && is_letter(text_[begin])) ++begin;
    return begin;
  }

  /// Where the unit after a number ends, with what follows a '/' without a space ("TB/s", "/s").
  /// Text that is no unit is left to be an operator or a mistake.
  std::size_t unit_end(std::size_t begin) const {
    const std::size_t end = simple_unit_end(begin);
    std::size_t quotient = end;
    if (quotient < text_.size() && text_[quotient] == '/') {
      ++quotient;
      while (quotient < text_.size() && is_letter(text_[quotient])) ++quotient;
      const bool ends =
          quotient == text_.size() || !(is_word(text_[quotient]) || text_[quotient] == '.');
      if (ends && find_unit(text_.substr(begin, quotient - begin))) return quotient;
    }
    return end;
  }

  Term number() {
    const std::size_t at = at_;
    const std::size_t end = number_end();
    std::size_t unit = end;
    while (unit < text_.size() && text_[unit] == ' ') ++unit;
    const std::size_t last = unit_end(unit);
    const std::string word = text_.substr(unit, last - unit);
    const bool none = word.empty() || word == "and" || word == "or";
    const bool counts = unit == end && (word == "k" || word == "M" || word == "G" || word == "T");
    try {
      if (none) {
        at_ = end;
        return constant(at, parse_number(text_.substr(at, end - at)), {});
      }
      if (counts) {
        at_ = last;
        return constant(at, parse_number(text_.substr(at, last - at)), {});
      }
      const auto known = find_unit(word);
      if (!known) fail(unit, word.size(), "unknown unit '" + word + "'");
      at_ = last;
      const double value =
          parse_quantity(text_.substr(at, end - at) + " " + word, known->dimension);
      return constant(at, value, {ExpressionType::Kind::kNumber, known->dimension});
    } catch (const UnitError& error) {
      fail(at, last - at, error.what(), error.suggestion());
    }
  }

  /// Bounds the nesting, and so the stack.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      constexpr int kDeepest = 200;
      if (++parser_.depth_ > kDeepest)
        parser_.fail(parser_.at_, 1, "the expression nests too deeply");
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  const std::string& text_;
  Location where_;
  std::vector<Expression::Name>& names_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int operators_ = 0;
};

}  // namespace

std::optional<Term> parse_terms(const std::string& text, const Location& where,
                                std::vector<Expression::Name>& names, Diagnostics& diagnostics) {
  try {
    return Parser(text, where, names, diagnostics).whole();
  } catch (const Stop&) {
    return std::nullopt;
  }
}

}  // namespace orrery::config
