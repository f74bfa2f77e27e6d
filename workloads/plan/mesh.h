// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "workloads/plan/parallel_config.h"
#include "workloads/plan/rank_grid.h"

namespace orrery {

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
