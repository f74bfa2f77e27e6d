// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "host/environment.h"
#include "host/measurement.h"

namespace orrery::measure {

/// What a run needs beside the measurements.
struct Run {
  RunInfo info;
  std::filesystem::path out;
  /// Opens the device; called in the process of each measurement. Throws when there is none.
  std::function<Context()> open_device;
  std::string device_section;  ///< section of environment.yaml about the device
  std::ostream* log = nullptr;
};

/// Runs each measurement in a process of its own, and after each writes environment.yaml with all
/// that ended so far. <name>.csv holds the rows of a measurement, also of one that failed half-way
/// or was killed, and is not there when it had none.
std::vector<Outcome> run_all(const std::vector<const Measurement*>& selected, const Run& run);

/// The most that all measurements may take together, seconds, so that the whole run with its start
/// stays under 3, 9 and 10 minutes. A measurement ends its last point after its budget, so
/// `--priority` reserves 30 s.
inline constexpr double kQuickLimit_s = 170, kFullLimit_s = 520, kPriorityLimit_s = 570;

/// Time budget of one measurement at a depth, seconds; 0 if it is not measured at that depth.
double budget_s(const Measurement& measurement, Depth depth);

/// A table of what each measurement does, and the sum of their budgets against the limits
/// ("within budget" or "over budget").
std::string listing(const std::vector<Measurement>& all);

}  // namespace orrery::measure
