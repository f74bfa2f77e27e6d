// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/plan/parallel_config.h"

namespace orrery {

/// Lists of ranks that communicate with each other.
using RankGroups = std::vector<std::vector<int>>;

/// An axis of a grid: "tp", and how many ranks lie along it.
struct GridAxis {
  std::string name;
  int size = 1;
};

/// A coordinate along the axis of that name.
struct GridCoordinate {
  std::string_view axis;
  int at = 0;
};

/// Ranks numbered along named axes, of which the first varies fastest. An axis is a name and a
/// size: a further one, or another order, is another list.
class RankGrid {
 public:
  /// @throws std::invalid_argument for two axes of one name and for sizes below 1
  explicit RankGrid(std::vector<GridAxis> axes);

  int ranks() const;
  bool has(std::string_view axis) const;
  /// Where `rank` lies along the axis.
  /// @throws std::invalid_argument for an axis that is not there, as do the functions below
  int coordinate(int rank, std::string_view axis) const;
  int size(std::string_view axis) const;

  /// Groups of ranks that differ along the axes `along` and nowhere else, of those that have the
  /// coordinates `fixed`. Ranks ascend in their group, and groups by their first rank.
  RankGroups groups(const std::vector<std::string>& along,
                    const std::vector<GridCoordinate>& fixed = {}) const;
  /// All ranks that have these coordinates, ascending.
  std::vector<int> ranks_at(const std::vector<GridCoordinate>& fixed) const;

 private:
  struct Placed {
    GridAxis axis;
    int stride = 1;  ///< ranks between two neighbours along the axis
  };
  const Placed& at(std::string_view axis) const;
  /// The lowest rank that has these coordinates.
  int first_at(const std::vector<GridCoordinate>& fixed) const;

  std::vector<Placed> axes_;
};

/// Each group as runs of so many ranks.
RankGroups runs_of(const RankGroups& groups, int length);

/// The ranks of a ParallelConfig, as two grids over the same ranks: what every token passes (tp,
/// cp, dp, pp) and the experts (etp, ep, edp, pp; edp are the ranks that hold the same experts).
/// Groups are named by their axes.
class Mesh {
 public:
  using Groups = RankGroups;

  /// In the order that `parallel` says; Megatron's has a tensor parallel group on neighbouring
  /// accelerators (Megatron-Core, parallel_state.py).
  /// @throws config::ConfigError as require_consistent does, and for an order in which the experts
  /// of a stage are on ranks of another.
  explicit Mesh(const ParallelConfig& parallel);
  /// Any axes and orders that have the same ranks at each coordinate of their axis pp.
  /// @throws std::invalid_argument where they have not, or share another axis
  Mesh(ParallelConfig parallel, RankGrid all, RankGrid experts);

  const ParallelConfig& parallel() const { return parallel_; }
  int ranks() const { return all_.ranks(); }

  /// All ranks of a pipeline stage, ascending.
  std::vector<int> stage(int pp) const;
  /// Groups along the given axes of one grid, {"tp"} or {"cp", "dp"}, on a stage. {"dcp"}: of each
  /// tensor parallel group, the ranks that follow each other and share a cache (vLLM,
  /// distributed/parallel_state.py). {"cp a2a"}, {"cp p2p"}: of each context parallel group, runs
  /// of cp_a2a ranks, and one rank of each run (Megatron-Core, parallel_state.py,
  /// hierarchical_context_parallel_sizes).
  /// @throws std::invalid_argument where no grid has all of them
  Groups groups(const std::vector<std::string>& along, int pp) const;
  /// A rank of each stage, those that differ in nothing but the stage: for two stages {source,
  /// destination} of messages.
  Groups across(const std::vector<int>& stages) const;
  Groups pairs(int from_pp, int to_pp) const { return across({from_pp, to_pp}); }

 private:
  ParallelConfig parallel_;
  RankGrid all_;
  RankGrid experts_;
};

}  // namespace orrery
