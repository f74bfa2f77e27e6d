// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "workloads/parallelism/parallel_config.h"

namespace orrery {

/// Where a rank stands in the three dimensions of the mesh.
struct MeshPosition {
  int tp = 0, dp = 0, pp = 0;
  bool operator==(const MeshPosition&) const = default;
};

/// The ranks of a ParallelConfig in Megatron's default order: tp varies fastest, then dp, then pp,
/// so that a tensor parallel group sits on neighbouring accelerators; for experts etp, then ep,
/// then their replicas (Megatron-Core, parallel_state.py). Groups are lists of ranks;
/// the functions return all groups of one pipeline stage.
class Mesh {
 public:
  using Groups = std::vector<std::vector<int>>;

  /// @throws config::ConfigError as require_supported does.
  explicit Mesh(const ParallelConfig& parallel);

  const ParallelConfig& parallel() const { return parallel_; }
  int ranks() const { return parallel_.ranks(); }
  int rank(MeshPosition position) const;
  MeshPosition position(int rank) const;

  /// All tp * dp ranks of a stage, ascending.
  std::vector<int> stage(int pp) const;
  Groups tensor_groups(int pp) const;          ///< dp groups of tp ranks
  Groups data_groups(int pp) const;            ///< tp groups of dp ranks
  Groups expert_groups(int pp) const;          ///< groups of ep ranks, etp apart
  Groups expert_tensor_groups(int pp) const;   ///< groups of etp consecutive ranks of the stage
  Groups expert_data_groups(int pp) const;     ///< ep * etp groups that hold the same parameters
  Groups pairs(int from_pp, int to_pp) const;  ///< {source, destination} for every (tp, dp)

 private:
  ParallelConfig parallel_;
};

}  // namespace orrery
