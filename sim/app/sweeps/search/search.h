// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/search/algorithm.h"

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

/// The places of a plan as genomes. The first gene is the part of the plan, a row or an explicit
/// point of one; each axis is one of the others, whether or not the points of a part have it. Of
/// the blocks of a part the one counts in which the conditions of `when` come out as they do.
/// Serves one thread.
class SearchSpace {
 public:
  /// @param sweep outlives it
  explicit SearchSpace(const Sweep& sweep);

  const std::vector<Gene>& genes() const { return genes_; }
  /// The place with these values; none where there is no point: a rule excludes it, or its values
  /// cannot stand together.
  std::optional<std::uint64_t> place_of(const Genome& genome);
  /// Values of a place. Genes of axes that its block does not have are 0.
  Genome genome_of(std::uint64_t place) const;
  /// The first place with a point from this one on that `wanted` takes, then from the beginning;
  /// none where there is none.
  template <class Wanted>
  std::optional<std::uint64_t> next_point(std::uint64_t from, const Wanted& wanted) {
    for (const auto& [first, last] :
         {std::pair{from, sweep_.places()}, std::pair{std::uint64_t{0}, from}}) {
      PlanCursor cursor(sweep_);
      for (cursor.seek(first); !cursor.at_end() && cursor.place() < last; cursor.next())
        if (wanted(cursor.place()) && is_point(cursor)) return cursor.place();
    }
    return std::nullopt;
  }

 private:
  /// Blocks that differ in the conditions that hold for them.
  struct Part {
    std::vector<std::size_t> blocks;
  };

  static bool is_point(const PlanCursor& cursor) {
    return cursor.kind() == PlaceKind::kPoint && cursor.can_be();
  }
  /// What is at a place: asked once, as rules may take milliseconds.
  enum class At { kPoint, kOtherBlock, kNothing };
  At look_at(std::size_t block, std::uint64_t place);
  void add_block(std::size_t index);
  PlanCursor& cursor_of(std::size_t block);

  const Sweep& sweep_;
  std::vector<Part> parts_;
  std::vector<std::vector<std::size_t>> genes_of_;  ///< genes of the axes of each block
  std::map<const Axis*, std::size_t> gene_of_;
  std::vector<Gene> genes_;
  std::map<std::size_t, std::unique_ptr<PlanCursor>> cursors_;  ///< cursors by block
  std::map<std::uint64_t, At> looked_at_;                       ///< answers by place
};

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
