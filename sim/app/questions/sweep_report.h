// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sim/app/sweeps/plan/plan_counts.h"
#include "sim/app/sweeps/run/run_sweep.h"
#include "sim/app/sweeps/search/run_search.h"
#include "sim/results/answer.h"

namespace orrery {

/// Where a sweep comes from and goes to.
struct SweepFiles {
  std::string sweep, store;
};

/// "12 points: 5 read from the store, 7 simulated in 0.3 s": of this run, not of the result.
std::string counts_of(const SweepResults& results);

/// One table a case with one row a name, then where the store is and what to try next. It has no
/// JSON: that of many points takes longer than their simulation.
Answer sweep_report(const Sweep& sweep, const SweepResults& results, const SweepFiles& files);

/// All points, and which of them the tables show: the same bytes for the same sweep and results,
/// wherever those come from.
Answer sweep_points(const Sweep& sweep, const SweepResults& results, const SweepFiles& files);

/// "1000 points of 12288 places evaluated: 12 read from the store, 988 simulated in 8.1 s": of this
/// run, not of the result.
std::string counts_of(const SearchResults& results, const Sweep& sweep);

/// The front that a search found, and how much of its hypervolume was there after how many
/// evaluations: where it still grew at the end, more of them find more.
/// @param sweep the plan at the last fidelity
Answer search_report(const Sweep& sweep, const SearchConfig& config, const SearchResults& results,
                     const SweepFiles& files);

/// What a plan is told of.
struct PlanReport {
  PlanEstimate estimate;
  std::optional<PlanListing> exact;  ///< none: the estimate alone is asked for
  std::size_t jobs = 1;              ///< processes that would simulate
};

/// One line: "about 9,000,000 points of 10,000,000 places, 12 h on 2 processors".
std::string estimate_line(const Sweep& sweep, const PlanEstimate& estimate, std::size_t jobs);

/// What a plan has and how long it takes: counts of the cross product, of what each rule excludes,
/// of what cannot be, is done and is to do.
Answer plan_report(const Sweep& sweep, const PlanReport& report);

}  // namespace orrery
