// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/app/sweep_config.h"

namespace orrery {

/// What a sweep found; records in the order of its points.
struct SweepResults {
  std::vector<RunRecord> records;
  std::size_t from_store = 0;
  std::size_t simulated = 0;
  std::size_t failed = 0;
  double seconds = 0;
};

/// One table a case with one row a name, then where the store is and what to try next.
void print_sweep(const Sweep& sweep, const SweepResults& results, const std::string& store,
                 std::ostream& out);

/// All points, and which of them the tables show.
nlohmann::ordered_json sweep_to_json(const Sweep& sweep, const SweepResults& results,
                                     const std::string& store);

}  // namespace orrery
