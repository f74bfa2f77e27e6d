// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/app/sweeps/run/run_sweep.h"
#include "sim/app/sweeps/search/search.h"

namespace orrery {

struct SearchLevel {
  std::string fidelity;  ///< empty: points are as the sweep says
  std::uint64_t from_store = 0;
  std::uint64_t simulated = 0;
};

struct SearchResults {
  std::vector<Evaluated> evaluated;  ///< points at the last fidelity, in the order of the search
  std::vector<SearchLevel> levels;
  std::uint64_t begun_from = 0;  ///< points of the store that it began with
  std::uint64_t failed = 0;
  bool exhausted = false;  ///< whether it ended because there are no other points
  std::string stopped;     ///< why it ended early; empty: it did not
  double seconds = 0;
};

class Scorer {
 public:
  /// @throws config::ConfigError as search_objectives()
  explicit Scorer(const Sweep& sweep) : sweep_(sweep), objectives_(search_objectives(sweep)) {}
  Score operator()(const RunRecord& record, std::uint32_t case_index) const {
    return score_of(record, objectives_, sweep_.config.cases[case_index].choose);
  }

 private:
  const Sweep& sweep_;
  std::vector<ObjectiveConfig> objectives_;
};

/// Searches a sweep: simulates what the search asks for and the store does not have, and saves it,
/// a generation at a time. Points that the store has are read, so a search that was ended goes on
/// where it was, with the same points as without its end. A new one begins with the best of them.
/// @param levels the sweep at each fidelity, by sweeps_by_fidelity()
/// @throws as run_sweep()
SearchResults run_search(const std::vector<Sweep>& levels, const SearchConfig& config,
                         ResultStore& store, const SweepOptions& options);

}  // namespace orrery
