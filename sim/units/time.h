// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/units/units.h"

namespace orrery {

/// Simulated time in the engine: integer picoseconds since the start of the simulation.
using Picoseconds = std::uint64_t;

/// Times stay below 2^63 ps (106 days): the event queue and SystemC both rely on it.
inline constexpr Picoseconds kMaxTime = (Picoseconds{1} << 63) - 1;

/// Rounds to the nearest picosecond (ties to even).
/// @throws std::overflow_error above kMaxTime, std::domain_error when negative or not a number.
Picoseconds to_picoseconds(Seconds duration);

/// The first picosecond that is not before `duration`: what bounds a time from below.
/// @throws as to_picoseconds()
Picoseconds picoseconds_after(Seconds duration);

/// The only way back; exact below 2^53 ps (2.5 hours), otherwise to the nearest double.
constexpr Seconds to_seconds(Picoseconds time) {
  return Seconds(static_cast<double>(time) * 1e-12);
}

/// @throws std::overflow_error when the sum exceeds kMaxTime.
Picoseconds checked_add(Picoseconds time, Picoseconds duration);

}  // namespace orrery
