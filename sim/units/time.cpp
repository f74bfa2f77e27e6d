// SPDX-License-Identifier: Apache-2.0
#include "sim/units/time.h"

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace orrery {

Picoseconds to_picoseconds(Seconds duration) {
  const double ps = duration.base() * 1e12;
  // The negated comparison also catches NaN.
  if (!(ps >= 0)) throw std::domain_error("a duration is negative, or not a number");
  if (ps >= static_cast<double>(kMaxTime)) {
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%.3g", duration.base());
    throw std::overflow_error(std::string("a duration of ") + seconds.data() +
                              " s is longer than simulated time can count (106 days)");
  }
  // Adding 2^52 leaves no bits for a fraction, so it rounds as nearbyint does, without its call.
  constexpr double kNoFraction = 4503599627370496.0;
  if (ps < kNoFraction) {
    return static_cast<Picoseconds>((ps + kNoFraction) - kNoFraction);
  }
  return static_cast<Picoseconds>(ps);
}

Picoseconds picoseconds_after(Seconds duration) {
  const Picoseconds nearest = to_picoseconds(duration);
  return to_seconds(nearest) < duration ? checked_add(nearest, 1) : nearest;
}

Picoseconds checked_add(Picoseconds time, Picoseconds duration) {
  if (duration > kMaxTime || time > kMaxTime - duration) {
    throw std::overflow_error("the time is longer than simulated time can count (106 days)");
  }
  return time + duration;
}

}  // namespace orrery
