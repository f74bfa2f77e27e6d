// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/results/run_record.h"

namespace orrery {

/// The text of an experiment file that `orrery run` repeats a result from: every value of its
/// configuration that is no default, with units; files that it names by where they are.
/// @throws UsageError for a result without configuration, or of a kind that there is no longer
std::string reproduction(const RunRecord& record);

/// What is in the way of the same result: another engine, a file that changed; empty: nothing.
/// @param file that reproduction() was written to
std::string obstacle_to(const RunRecord& record, const std::string& file);

}  // namespace orrery
