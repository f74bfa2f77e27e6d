// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/app/questions/describe.h"
#include "sim/machine/calibration.h"

namespace orrery {

/// Errors of every fit, on what was fitted and on what was held out; of a single calibration also
/// its parameters with their standard errors, and the files it rests on.
Description describe_calibrations(const std::vector<Calibration>& calibrations);

/// The mean error as a cell; "-": of no rows.
std::string mape(const ErrorSummary& errors);

/// A line for each rule that left rows out, and for each table that breaks physics.
void print_left_out(std::ostream& out, const std::vector<Calibration>& calibrations);
nlohmann::ordered_json left_out_json(const std::vector<Calibration>& calibrations);

}  // namespace orrery
