// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "sim/app/experiments/core/exit_codes.h"

namespace orrery {

/// What a point may take, and the process that runs it.
struct PointLimits {
  std::chrono::nanoseconds time{0};      ///< 0: as long as it does
  std::int64_t memory = 0;               ///< resident bytes of the process; 0: as many as it does
  std::size_t worker_points = 10'000;    ///< after so many points a process is replaced
  std::int64_t worker_memory = 1 << 30;  ///< and after one that leaves it so many bytes larger
};

/// What a point took of the process that it ran in.
struct PointUse {
  double wall_s = 0;
  double user_s = 0,
         system_s = 0;           ///< CPU; where the process died with the point: all that it took
  std::int64_t peak_bytes = 0;   ///< largest resident memory of the process while it was on it
  int signal = 0;                ///< signal that ended the process; 0: none
  std::string stderr_tail = {};  ///< end of what was said of a point that failed
};

/// What became of one point: what its work returned, or why it returned nothing.
struct PointOutcome {
  std::size_t point = 0;
  std::variant<std::string, Failure> result;
  PointUse use = {};
  bool died = false;  ///< the process ended: another try may go well
};

}  // namespace orrery
