// SPDX-License-Identifier: Apache-2.0
#include "sim/units/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "sim/units/unit_table.h"

namespace orrery {
namespace {

constexpr std::string_view kDigits = "0123456789";

/// A decimal number that is still text: the mantissa without a '+', and the power of ten.
struct Decimal {
  std::string mantissa;
  int exponent = 0;
};

std::size_t skip_digits(std::string_view text, std::size_t from) {
  return std::min(text.find_first_not_of(kDigits, from), text.size());
}

/// The end of the number at the start of `text`. Grouping marks count as part of it, to be refused
/// by name.
std::size_t number_end(std::string_view text) {
  std::size_t end = text.find_first_of("+-") == 0 ? 1 : 0;
  end = std::min(text.find_first_not_of("0123456789_,.", end), text.size());
  if (end > 0 && end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const std::size_t sign = text.find_first_of("+-", end + 1) == end + 1 ? 1 : 0;
    const std::size_t exponent_end = skip_digits(text, end + 1 + sign);
    if (exponent_end > end + 1 + sign) end = exponent_end;
  }
  return end;
}

bool starts_hexadecimal(std::string_view digits) {
  return digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
}

[[noreturn]] void refuse_number(std::string_view text) {
  const std::string_view digits = text.find_first_of("+-") == 0 ? text.substr(1) : text;
  if (starts_hexadecimal(digits)) {
    throw UnitError(fmt::format("'{}' is hexadecimal; write it as a decimal number", text));
  }
  const bool number_like = !digits.empty() && kDigits.find(digits[0]) != std::string_view::npos &&
                           digits.find_first_not_of("0123456789_,.eE+-") == std::string_view::npos;
  const std::string_view word = digits.substr(digits.find('.') == 0 ? 1 : 0);
  if (word == "inf" || word == "Inf" || word == "nan" || word == "NaN") {
    throw UnitError(fmt::format("expected a finite number, got '{}'", text));
  }
  if (number_like && digits.find_first_of("_,") != std::string_view::npos) {
    throw UnitError(fmt::format("'{}' has grouped digits; write them without '_' and ','", text));
  }
  if (number_like && digits[0] == '0' && digits.size() > 1 && digits[1] != '.') {
    throw UnitError(
        fmt::format("'{}' starts with 0, which is octal to some readers; write '{}'", text,
                    digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1))));
  }
  throw UnitError(fmt::format("expected a number, got '{}'", text));
}

/// The grammar of JSON numbers, with an optional '+'.
Decimal parse_decimal(std::string_view text) {
  const std::size_t start = text.find_first_of("+-") == 0 ? 1 : 0;
  std::size_t end = skip_digits(text, start);
  const bool octal = end - start > 1 && text[start] == '0';
  bool valid = end > start && !octal;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction_end = skip_digits(text, end + 1);
    valid = valid && fraction_end > end + 1;
    end = fraction_end;
  }
  Decimal decimal;
  decimal.mantissa = text.substr(text.find('+') == 0 ? 1 : 0, end - (text.find('+') == 0 ? 1 : 0));
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const bool plus = end + 1 < text.size() && text[end + 1] == '+';
    const char* first = text.data() + end + 1 + (plus ? 1 : 0);
    const auto [last, error] = std::from_chars(first, text.data() + text.size(), decimal.exponent);
    constexpr int kLargest = 1000;  // far beyond any double; keeps later sums in range
    const bool in_range = error == std::errc{} && std::abs(decimal.exponent) <= kLargest;
    valid = valid && (in_range || error == std::errc::result_out_of_range);
    if (!in_range) decimal.exponent = kLargest;
    end = static_cast<std::size_t>(last - text.data());
  }
  if (!valid || end != text.size()) refuse_number(text);
  return decimal;
}

/// The double nearest to `decimal * 10^shift`.
double to_double(const Decimal& decimal, int shift, std::string_view text) {
  const std::string shifted = decimal.mantissa + "e" + std::to_string(decimal.exponent + shift);
  double value = 0;
  const auto [end, error] = std::from_chars(shifted.data(), shifted.data() + shifted.size(), value);
  if (error != std::errc{}) {
    throw UnitError(fmt::format("'{}' is outside the range of a double", text));
  }
  return value + 0.0;  // -0 becomes 0
}

std::string expected(Dimension dimension, std::string_view text) {
  return fmt::format("expected {}, got '{}'", dimension_expectation(dimension), text);
}

std::string with_article(const std::string& noun) {
  const bool vowel = std::string_view("aeiou").find(noun[0]) != std::string_view::npos;
  return (vowel ? "an " : "a ") + noun;
}

/// The nearest name, else the first that goes on behind a blank: kg CO2 for kg.
std::string unit_like(std::string_view name, Dimension dimension) {
  const std::vector<std::string> names = unit_names(dimension);
  std::string nearest = nearest_name(name, names);
  for (std::size_t i = 0; nearest.empty() && i < names.size(); ++i)
    if (names[i].starts_with(std::string(name) + " ")) nearest = names[i];
  return nearest;
}

Unit parse_unit(std::string_view name, std::string_view text, Dimension dimension) {
  const std::optional<Unit> unit = find_unit(name);
  if (!unit) {
    throw UnitError(fmt::format("{} with the unknown unit '{}'", expected(dimension, text), name),
                    unit_like(name, dimension));
  }
  if (unit->dimension != dimension) {
    const DimensionText* other = find_dimension(unit->dimension);
    throw UnitError(expected(dimension, text) +
                    (other != nullptr ? ", " + with_article(other->name) : std::string()));
  }
  return *unit;
}

/// `digits` with the decimal point after the first one, times 10^exponent, without an exponent
/// where that is short.
std::string place_point(std::string digits, int exponent) {
  constexpr int kMostDigits = 15;
  constexpr int kMostZeros = 3;
  if (exponent > kMostDigits || exponent < -kMostZeros) {
    if (digits.size() > 1) digits.insert(1, ".");
    return digits + "e" + std::to_string(exponent);
  }
  if (exponent < 0)
    return "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return digits + std::string(whole - digits.size(), '0');
  return digits.insert(whole, ".");
}

/// The shortest digits that give `value` back, and the power of ten of the first one.
std::pair<std::string, int> shortest_digits(double value) {
  char buffer[32];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  if (digits.size() > 1) digits.erase(1, 1);
  const std::size_t exponent_start = e + (text[e + 1] == '+' ? 2 : 1);
  int exponent = 0;
  std::from_chars(text.data() + exponent_start, text.data() + text.size(), exponent);
  return {digits, exponent};
}

/// In a unit that is no power of ten the shortest text has to be searched for; empty if none reads
/// back as `base`.
std::string print_scaled(double base, const Unit& unit, std::string_view name,
                         Dimension dimension) {
  const double value = base / std::pow(10.0, unit.exponent) * unit.over / unit.times;
  if (!std::isfinite(value)) return {};
  for (int precision = std::numeric_limits<double>::digits10;
       precision <= std::numeric_limits<double>::max_digits10; ++precision) {
    char buffer[32];
    const auto [end, error] =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, precision);
    std::string text = std::string(buffer, end) + " " + std::string(name);
    if (parse_quantity(text, dimension) == base) return text;
  }
  return {};
}

const DimensionText& known_dimension(Dimension dimension) {
  const DimensionText* text = find_dimension(dimension);
  if (text == nullptr) throw std::logic_error("a dimension without a name in unit_table.cpp");
  return *text;
}

/// Suffixes that others write for the same power of 1,000: K, and B for a billion.
void refuse_other_suffix(std::string_view text, bool counts) {
  const char meant = !counts ? '\0' : text.back() == 'K' ? 'k' : text.back() == 'B' ? 'G' : '\0';
  if (meant == '\0') return;
  const std::string_view number = text.substr(0, text.size() - 1);
  to_double(parse_decimal(number), 0, text);
  throw UnitError(fmt::format("expected a number, got '{}'", text), std::string(number) + meant);
}

}  // namespace

/// Counts may end in k, M, G or T, as people write them: "15T".
double parse_number(std::string_view text) {
  constexpr std::string_view kSuffixes = "kMGT";
  const std::size_t end = text.empty() ? 0 : text.size() - 1;
  const bool counts = end > 0 && kDigits.find(text[end - 1]) != std::string_view::npos;
  const std::size_t suffix = counts ? kSuffixes.find(text[end]) : std::string_view::npos;
  if (suffix == std::string_view::npos) {
    refuse_other_suffix(text, counts);
    return to_double(parse_decimal(text), 0, text);
  }
  return to_double(parse_decimal(text.substr(0, end)), 3 * (static_cast<int>(suffix) + 1), text);
}

std::size_t number_length(std::string_view text) {
  const std::size_t end = number_end(text);
  return text.substr(0, end).find_first_of(kDigits) == std::string_view::npos ? 0 : end;
}

double parse_quantity(std::string_view text, Dimension dimension) {
  const std::size_t space = text.find(' ');
  const bool hexadecimal = starts_hexadecimal(text);
  const std::size_t end = space != std::string_view::npos ? space
                          : hexadecimal                   ? text.size()
                                                          : number_end(text);
  const std::string_view number = text.substr(0, end);
  if (number.find_first_of(kDigits) == std::string_view::npos) {
    throw UnitError(expected(dimension, text));
  }
  const Decimal decimal = parse_decimal(number);
  const std::size_t unit_start = text.find_first_not_of(' ', end);
  if (unit_start == std::string_view::npos) {
    if (to_double(decimal, 0, text) == 0) return 0;
    throw UnitError(expected(dimension, text));
  }
  const Unit unit = parse_unit(text.substr(unit_start), text, dimension);
  const double value = to_double(decimal, unit.exponent, text) * unit.times / unit.over;
  if (!std::isfinite(value))
    throw UnitError(fmt::format("'{}' is outside the range of a double", text));
  return value;
}

std::string print_number(double value) {
  if (!std::isfinite(value)) throw std::logic_error("a number to be printed is not finite");
  if (value == 0) return "0";
  const auto [digits, exponent] = shortest_digits(std::abs(value));
  return (value < 0 ? "-" : "") + place_point(digits, exponent);
}

std::string print_grouped(double value, int decimals) {
  const std::size_t first = std::signbit(value) ? 1 : 0;
  char digits[400];  // more than the largest double has
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals);
  std::string text(digits, end.ptr);
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t at = point; at > first + 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string print_quantity(double base, Dimension dimension) {
  if (!std::isfinite(base)) throw std::logic_error("a quantity to be printed is not finite");
  const DimensionText& text = known_dimension(dimension);
  if (base == 0) return std::string("0 ") + text.base_unit;
  const auto [digits, exponent] = shortest_digits(std::abs(base));
  std::string_view name = text.print_units.front();
  for (const std::string_view candidate : text.print_units) {
    if (find_unit(candidate)->exponent <= exponent) name = candidate;
  }
  Unit unit = *find_unit(name);
  if (!unit.is_decimal()) {
    std::string scaled = print_scaled(base, unit, name, dimension);
    if (!scaled.empty()) return scaled;
    name = text.base_unit;
    unit = *find_unit(name);
  }
  return (base < 0 ? "-" : "") + place_point(digits, exponent - unit.exponent) + " " +
         std::string(name);
}

std::string dimension_name(Dimension dimension) { return known_dimension(dimension).name; }
std::vector<std::string> dimension_examples(Dimension dimension) {
  const auto& examples = known_dimension(dimension).examples;
  return {examples.begin(), examples.end()};
}
std::string dimension_expectation(Dimension dimension) {
  return fmt::format("{} (e.g. {})", dimension_name(dimension),
                     comma_joined(dimension_examples(dimension)));
}
std::string base_unit(Dimension dimension) { return known_dimension(dimension).base_unit; }

}  // namespace orrery
