// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/numbers.h"

#include <algorithm>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

constexpr std::string_view kDecimalDigits = "0123456789";
constexpr std::size_t kThousands = 3;  // digits of a group

constexpr std::size_t kLongest = 64;  // characters of a number

bool has_digits_alone(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDecimalDigits) == text.npos;
}

/// The number with this decimal mark, the other one parting thousands; nothing where it is none.
std::optional<std::string> with_decimal_mark(std::string_view text, char decimal) {
  const char thousands = decimal == '.' ? ',' : '.';
  const std::size_t exponent = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, exponent);
  const std::size_t mark = std::min(mantissa.find(decimal), mantissa.size());
  const std::string_view fraction = mantissa.substr(std::min(mark + 1, mantissa.size()));
  if (mark < mantissa.size() && !has_digits_alone(fraction)) return std::nullopt;
  std::string_view whole = mantissa.substr(0, mark);
  std::string digits;
  if (whole.find(thousands) == whole.npos) {
    digits = whole;
  } else {
    for (bool first = true;; first = false) {
      const std::size_t end = std::min(whole.find(thousands), whole.size());
      const bool fits =
          first ? end >= 1 && end <= kThousands && whole[0] != '0' : end == kThousands;
      if (!fits) return std::nullopt;
      digits += whole.substr(0, end);
      if (end == whole.size()) break;
      whole.remove_prefix(end + 1);
    }
  }
  if (!has_digits_alone(digits)) return std::nullopt;
  if (mark < mantissa.size()) digits.append(1, '.').append(fraction);
  return digits.append(text.substr(exponent));
}

/// Without what some locales part thousands with: spaces, also narrow and unbreakable ones, and
/// apostrophes between digits.
std::string without_spaces(std::string_view text) {
  std::string out(text);
  for (const std::string_view space : {"\xe2\x80\xaf", "\xc2\xa0", "\xe2\x80\x99", "'", " "}) {
    for (std::size_t at = out.find(space); at != out.npos; at = out.find(space, at)) {
      out.erase(at, space.size());
    }
  }
  return out;
}

}  // namespace

NumberMarks::NumberMarks(const std::string& said) {
  if (said == "point") decimal_ = '.';
  if (said == "comma") decimal_ = ',';
  if (!said.empty() && decimal_ == 0) {
    throw config::ConfigError("--decimal-mark is point or comma, not '" + said + "'");
  }
}

void NumberMarks::observe(std::string_view number) {
  if (number.size() > kLongest) return;
  const std::string text = without_spaces(number);
  const auto point = with_decimal_mark(text, '.'), comma = with_decimal_mark(text, ',');
  if (point && !comma) ++points_;
  if (comma && !point) ++commas_;
}

NumberMarks::Reading NumberMarks::read(std::string_view number, std::string& plain) const {
  if (number.size() > kLongest) return Reading::kNone;
  const std::string text = without_spaces(number);
  const auto point = with_decimal_mark(text, '.'), comma = with_decimal_mark(text, ',');
  if (!point && !comma) return Reading::kNone;
  char decimal = decimal_;
  if (decimal == 0 && points_ != commas_) decimal = points_ > commas_ ? '.' : ',';
  if (decimal == 0 && point == comma) decimal = '.';
  if (decimal == 0) return Reading::kAmbiguous;
  const auto& read = decimal == '.' ? point : comma;
  if (!read) return Reading::kNone;
  plain = *read;
  return Reading::kNumber;
}

}  // namespace orrery
