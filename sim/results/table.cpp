// SPDX-License-Identifier: Apache-2.0
#include "sim/results/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "sim/units/printable.h"

namespace orrery {
namespace {

constexpr int kSignificantDigits = 3;

struct Decimal {
  bool negative;
  std::string digits;  ///< kSignificantDigits of them
  int exponent;        ///< power of ten of the first digit
};

/// std::to_chars rounds correctly and knows no locale; the rest is moving the point.
Decimal decimal(double value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(value),
                                 std::chars_format::scientific, kSignificantDigits - 1);
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
  int exponent = 0;
  const char* first = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(first, text.data() + text.size(), exponent);
  return {std::signbit(value), digits, exponent};
}

/// The number divided by 10^scale.
std::string place_point(const Decimal& number, int scale) {
  const int point = number.exponent - scale + 1;  // digits before it
  std::string text = number.digits;
  if (point <= 0) {
    text = "0." + std::string(static_cast<std::size_t>(-point), '0') + text;
  } else if (static_cast<std::size_t>(point) < text.size()) {
    text.insert(static_cast<std::size_t>(point), ".");
  } else {
    text.append(static_cast<std::size_t>(point) - text.size(), '0');
  }
  return (number.negative ? "-" : "") + text;
}

/// Which prefixes a unit takes.
struct UnitStyle {
  int smallest, largest;  ///< powers of ten
  bool joined;            ///< "41.2 GB" rather than "41.2 G tokens"
};

UnitStyle style_of(std::string_view unit) {
  const std::string_view symbol = unit.substr(0, unit.find('/'));
  if (symbol.empty()) return {0, 12, true};
  if (symbol == "s") return {-12, 0, true};
  if (symbol == "J" || symbol == "W") return {-12, 18, true};
  if (symbol == "B" || symbol == "FLOP" || symbol == "Hz" || symbol == "b") return {0, 18, true};
  return {0, 12, false};
}

std::string_view prefix(int power) {
  static constexpr std::string_view kPrefixes = "pnum kMGTPE";
  if (power == 0) return "";
  const int place = power / 3 + 4;
  return kPrefixes.substr(static_cast<std::size_t>(place), 1);
}

/// Zero for combining marks and joiners, two for East Asian wide characters and pictographs
/// (Unicode, UAX #11): the blocks that occur, not the full table.
std::size_t code_point_width(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return first <= c && c <= last; };
  if (within(0x300, 0x36F) || within(0x200B, 0x200D) || within(0xFE00, 0xFE0F)) return 0;
  const bool wide = within(0x1100, 0x115F) || within(0x2E80, 0xA4CF) || within(0xAC00, 0xD7A3) ||
                    within(0xF900, 0xFAFF) || within(0xFE30, 0xFE6F) || within(0xFF00, 0xFF60) ||
                    within(0xFFE0, 0xFFE6) || within(0x1F300, 0x1F64F) ||
                    within(0x1F900, 0x1F9FF) || within(0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

std::string format_percent(double share, int digits) {
  return fmt::format("{:.{}f} %", 100 * share, digits);
}

std::string format_difference(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string format_si(double value, std::string_view unit) {
  if (unit == "ms") return format_si(value * 1e-3, "s");
  if (unit == "1" || unit.substr(0, 2) == "1/") unit.remove_prefix(1);
  std::string suffix(unit);
  std::string number;
  if (!std::isfinite(value)) {
    number = std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  } else if (value == 0) {
    number = "0";
  } else {
    const UnitStyle style = style_of(unit);
    const Decimal digits = decimal(value);
    const int third = static_cast<int>(std::floor(digits.exponent / 3.0)) * 3;
    const int power = std::clamp(third, style.smallest, style.largest);
    number = place_point(digits, power);
    const bool apart = !style.joined && power != 0;
    suffix = std::string(prefix(power)) + (apart ? " " : "") + suffix;
  }
  return suffix.empty() ? number : number + " " + suffix;
}

std::size_t display_width(std::string_view utf8) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i++]);
    // The number of leading ones is the length of the sequence; they are no part of the value.
    char32_t c = lead < 0xC0   ? lead
                 : lead < 0xE0 ? lead & 0x1F
                 : lead < 0xF0 ? lead & 0xF
                               : lead & 7;
    while (i < utf8.size() && (static_cast<unsigned char>(utf8[i]) & 0xC0) == 0x80) {
      c = c << 6 | (static_cast<unsigned char>(utf8[i++]) & 0x3F);
    }
    width += code_point_width(c);
  }
  return width;
}

Table Table::titled(std::string_view titles) {
  constexpr std::string_view kBetween = " | ";
  std::vector<Column> columns;
  for (std::size_t begin = 0; begin <= titles.size();) {
    const std::size_t end = std::min(titles.find(kBetween, begin), titles.size());
    const std::string_view title = titles.substr(begin, end - begin);
    const bool right = title.starts_with('>');
    columns.push_back(
        {std::string(title.substr(right ? 1 : 0)), right ? Align::kRight : Align::kLeft});
    begin = end + kBetween.size();
  }
  return Table(std::move(columns));
}

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) {
    throw std::logic_error(
        fmt::format("a row of {} cells in a table of {} columns", cells.size(), columns_.size()));
  }
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

}  // namespace orrery
