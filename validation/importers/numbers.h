// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery {

/// The number that the whole text is, in any locale; nothing if it is none.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A count: from 0 on.
inline std::optional<std::int64_t> parse_count(std::string_view text) {
  const auto count = whole_number<std::int64_t>(text);
  return count && *count >= 0 ? count : std::nullopt;
}

/// A finite number, times 10^exponent. The shift is made in the text, so that "152.19" with
/// exponent 3 is the double nearest to 152190.
inline std::optional<double> parse_real(std::string_view text, int exponent = 0) {
  auto number = whole_number<double>(text);
  if (number && exponent != 0) {
    const bool shiftable = text.find_first_of("eE") == std::string_view::npos;
    number = shiftable ? whole_number<double>(std::string(text) + "e" + std::to_string(exponent))
                       : *number * std::pow(10.0, exponent);
  }
  return number && std::isfinite(*number) ? number : std::nullopt;
}

/// Which marks a text has in its numbers: "1,234.5" with a decimal point, "1.234,5" with a decimal
/// comma. Numbers that are right with one mark alone tell it; "117,344" is right with both.
class NumberMarks {
 public:
  /// @param said "point", "comma", or empty: as the numbers tell
  /// @throws config::ConfigError for another word
  explicit NumberMarks(const std::string& said = {});

  /// Takes a number of the text into account; what is none tells nothing.
  void observe(std::string_view number);

  enum class Reading { kNumber, kNone, kAmbiguous };
  /// Reads a number from 0 on.
  /// @param plain gets it without marks of thousands, with a decimal point
  Reading read(std::string_view number, std::string& plain) const;

 private:
  char decimal_ = 0;  ///< mark that the user says; 0: none
  int points_ = 0, commas_ = 0;
};

}  // namespace orrery
