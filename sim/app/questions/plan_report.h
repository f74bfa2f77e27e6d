// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "sim/app/sweeps/plan/plan_counts.h"
#include "sim/results/answer.h"

namespace orrery {

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
