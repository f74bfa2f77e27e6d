// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/app/sweeps/search/random_search.h"
#include "sim/app/sweeps/search/search_space.h"

namespace orrery {

/// A point that the search has a score of at its last fidelity.
struct Evaluated {
  std::uint64_t place = 0;
  Score score;
};

/// What a search seeks, in the order of its file. @throws config::ConfigError where there is
/// nothing, or cases seek different things
std::vector<ObjectiveConfig> search_objectives(const Sweep& sweep);

/// Objectives of a result, less being better, and how far it is beyond the limits of `choose`.
Score score_of(const RunRecord& record, const std::vector<ObjectiveConfig>& objectives,
               const ChooseConfig& limits);

/// The plan at each fidelity of its search, cheap to dear; at least one. Places are the same.
/// @throws config::ConfigError where experiments have no fidelity
std::vector<Sweep> sweeps_by_fidelity(const Sweep& sweep);

/// The course of a search, apart from who evaluates: asks for scores of places and is told them.
/// Where it stands follows from the sweep, the seed and the scores alone; so a search is resumed by
/// telling it again what is known. No place is asked for twice at one fidelity. Serves one thread.
class Search {
 public:
  /// @param sweep outlives it
  /// @param begin_with places that are in the first generation, before those of the algorithm
  /// @throws config::ConfigError as search_objectives()
  Search(const Sweep& sweep, const SearchConfig& config,
         const std::vector<std::uint64_t>& begin_with = {});

  /// Places whose scores it waits for, ascending; none: it is at its end.
  const std::vector<std::uint64_t>& wanted() const { return wanted_; }
  /// The fidelity that they are wanted at, by its index.
  std::size_t level() const { return level_; }
  bool at_last_level() const { return level_ + 1 == levels_; }
  /// @param scores of wanted(), in that order
  void tell(const std::vector<Score>& scores);

  /// Points at the last fidelity, in the order of the search.
  const std::vector<Evaluated>& evaluated() const { return evaluated_; }
  /// Whether it ended because there are no other points.
  bool exhausted() const { return exhausted_; }

 private:
  void begin_generation(const std::vector<std::uint64_t>& begin_with = {});
  bool add_candidate();
  void want();

  SearchConfig config_;
  std::size_t levels_;
  SearchSpace space_;
  std::unique_ptr<SearchAlgorithm> algorithm_;
  SpreadGenomes immigrants_;
  std::set<std::uint64_t> seen_;           ///< places that were candidates
  std::vector<std::uint64_t> candidates_;  ///< places of this generation
  std::vector<std::uint64_t> wanted_;
  std::size_t level_ = 0;
  std::vector<Evaluated> evaluated_;
  bool exhausted_ = false;
};

}  // namespace orrery
