// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "host/measurement.h"

namespace orrery::measure {

/// The most that all measurements may take together, seconds, so that the whole run with its start
/// stays under 3 and 9 minutes.
inline constexpr double kQuickLimit_s = 170, kFullLimit_s = 520;

/// Time budget of one measurement at a depth, seconds.
double budget_s(const Measurement& measurement, Depth depth);

/// A table of what each measurement does, and the sum of their budgets against the limits
/// ("within budget" or "over budget").
std::string listing(const std::vector<Measurement>& all);

}  // namespace orrery::measure
