// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/app/sweeps/workers/local_workers.h"
#include "validation/checks/row_done.h"
#include "validation/checks/serving_validation.h"

namespace orrery {

/// Serves the rows of a table as ServingValidation does, with p10 to p90 of both times, `jobs` at a
/// time, in other processes: a crash costs the rows of one fleet. In the order of the rows.
/// @param models folder with Hugging Face configurations, as ServingValidation takes it
std::vector<ServingComparison> compare_served(const std::vector<ServingRow>& rows,
                                              const std::string& models,
                                              const RowDone& done = nullptr,
                                              std::size_t jobs = available_processors());

}  // namespace orrery
