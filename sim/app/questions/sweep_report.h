// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/app/sweeps/run/run_sweep.h"
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

}  // namespace orrery
