// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/app/sweeps/run_sweep.h"

namespace orrery {

/// Where a sweep comes from and goes to.
struct SweepFiles {
  std::string sweep, store;
};

/// One table a case with one row a name, then where the store is and what to try next.
void print_sweep(const Sweep& sweep, const SweepResults& results, const SweepFiles& files,
                 std::ostream& out);

/// "12 points: 5 read from the store, 7 simulated in 0.3 s": of this run, not of the result.
std::string counts_of(const SweepResults& results);

/// All points, and which of them the tables show. The same bytes for the same sweep and results,
/// wherever those come from.
nlohmann::ordered_json sweep_to_json(const Sweep& sweep, const SweepResults& results,
                                     const std::string& store);

}  // namespace orrery
