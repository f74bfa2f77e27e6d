// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/machine/calibration.h"
#include "sim/results/answer.h"

namespace orrery {

/// Errors of every fit, on what was fitted and on what was held out; of a single calibration also
/// its parameters with their standard errors, and the files it rests on.
Answer describe_calibrations(const std::vector<Calibration>& calibrations);

/// The mean error as a cell; "-": of no rows.
std::string mape(const ErrorSummary& errors);

/// A line for each rule that left rows out, and for each table that breaks physics.
std::string left_out_text(const std::vector<Calibration>& calibrations);
nlohmann::ordered_json left_out_json(const std::vector<Calibration>& calibrations);

}  // namespace orrery
