// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace orrery {

/// A number without what stands behind its point; numbers that no 64 bits hold are the next that
/// do, what is no number is 0. Files may hold any number where an integer is expected.
inline std::int64_t whole_number(double value) {
  constexpr double kLimit = 9.2e18;
  if (value >= kLimit) return std::numeric_limits<std::int64_t>::max();
  if (value <= -kLimit) return std::numeric_limits<std::int64_t>::min();
  return std::isnan(value) ? 0 : static_cast<std::int64_t>(value);
}

}  // namespace orrery
