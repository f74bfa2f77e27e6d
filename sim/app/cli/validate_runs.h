// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/results/answer.h"
#include "validation/checks/serving_validation.h"

namespace orrery {

/// Measured runs with records of every request beside their simulation: each with the host
/// as configured, and with one or more others to learn from, with the host fitted to those.
/// @param folders of runs
/// @param tables folder of operator tables; empty: Orrery's models price iterations
Answer validate_runs(const std::vector<std::string>& folders, const std::string& tables,
                     ServingValidation& validation);

}  // namespace orrery
