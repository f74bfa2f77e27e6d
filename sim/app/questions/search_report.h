// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/questions/sweep_report.h"
#include "sim/app/sweeps/search/run_search.h"
#include "sim/results/answer.h"

namespace orrery {

/// "1000 points of 12288 places evaluated: 12 read from the store, 988 simulated in 8.1 s": of this
/// run, not of the result.
std::string counts_of(const SearchResults& results, const Sweep& sweep);

/// The front that a search found, and how much of its hypervolume was there after how many
/// evaluations: where it still grew at the end, more of them find more.
/// @param sweep the plan at the last fidelity
Answer search_report(const Sweep& sweep, const SearchConfig& config, const SearchResults& results,
                     const SweepFiles& files);

}  // namespace orrery
