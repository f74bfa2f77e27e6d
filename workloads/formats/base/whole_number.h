// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace orrery {

/// A number without what stands behind its point; numbers that no 64 bits hold are the next that
/// do, what is no number is 0. Files may hold any number where an integer is expected.
inline std::int64_t whole_number(double value) {
  constexpr double kLimit = 9.2e18;
  if (value >= kLimit) return std::numeric_limits<std::int64_t>::max();
  if (value <= -kLimit) return std::numeric_limits<std::int64_t>::min();
  return std::isnan(value) ? 0 : static_cast<std::int64_t>(value);
}

/// The number that a text is, all of it.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace orrery
