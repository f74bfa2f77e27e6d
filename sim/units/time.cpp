// SPDX-License-Identifier: Apache-2.0
#include "sim/units/time.h"

#include <stdexcept>
#include <string>

namespace orrery {

Picoseconds to_picoseconds(Seconds duration) {
  const double ps = duration.base() * 1e12;
  // The negated comparison also catches NaN.
  if (!(ps >= 0 && ps < static_cast<double>(kMaxTime))) {
    throw std::overflow_error("a duration of " + std::to_string(duration.base()) +
                              " s is outside the simulated time of 0 to 106 days");
  }
  // Adding 2^52 leaves no bits for a fraction, so it rounds as nearbyint does, without its call.
  constexpr double kNoFraction = 4503599627370496.0;
  if (ps < kNoFraction) {
    return static_cast<Picoseconds>((ps + kNoFraction) - kNoFraction);
  }
  return static_cast<Picoseconds>(ps);
}

Picoseconds checked_add(Picoseconds time, Picoseconds duration) {
  if (duration > kMaxTime || time > kMaxTime - duration) {
    throw std::overflow_error("simulated time exceeds 2^63 ps (106 days)");
  }
  return time + duration;
}

}  // namespace orrery
