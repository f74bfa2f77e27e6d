// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/experiments/core/exit_codes.h"
#include "validation/checks/serving_validation.h"

namespace orrery {

/// Prints measured runs with records of every request beside their simulation: each with the host
/// as configured, and with one or more others to learn from, with the host fitted to those.
/// @param folders of runs
/// @param tables folder of operator tables; empty: Orrery's models price iterations
ExitCode validate_runs(const std::vector<std::string>& folders, const std::string& tables,
                       ServingValidation& validation, bool json);

}  // namespace orrery
