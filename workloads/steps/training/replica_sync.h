// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/transfer.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/plan/mesh.h"
#include "workloads/software/training_software.h"
#include "workloads/steps/training/training.h"

namespace orrery {

/// Replicas of experts: ranks that hold the same, on all stages that hold the same slices.
int expert_replicas(const TrainingConfig& config);

/// Parameters that one rank keeps of those that replicas share out.
struct OptimizerShard {
  double dense = 0;
  double experts = 0;
  double total() const { return dense + experts; }
};
OptimizerShard shard_of(const RankParameters& parameters, const TrainingConfig& config);

/// A collective of the optimizer.
Transfer optimizer_transfer(std::string name, std::string purpose, TransferKind kind, double bytes,
                            Mesh::Groups groups);

/// Collectives over the replicas of a stage's parameters.
class ReplicaSync {
 public:
  /// @param mesh, config outlive it
  ReplicaSync(const Mesh& mesh, const TrainingConfig& config, int stage);

  /// Gradients of these parameters are added up: scattered where shards have owners, and what
  /// arrives added up over copies of the shards.
  std::vector<Transfer> reduction(const RankParameters& parameters) const;
  /// Weights are gathered; none where every replica has updated all of them.
  std::vector<Transfer> gather(const RankParameters& parameters) const;

 private:
  /// Which of the replicas take part.
  enum class Among : std::uint8_t { kAll, kShards, kCopies };
  struct Collective {
    TransferKind kind;
    Among among;
    std::string what;
  };
  std::vector<Transfer> over_replicas(const Collective& collective, Bytes dense,
                                      Bytes experts) const;
  Mesh::Groups groups(const std::vector<std::string>& axes, Among among) const;
  Bytes weight_bytes(std::int64_t parameters, std::int64_t sixteen_bit) const;
  std::vector<Transfer> by_tensor(std::vector<Transfer> whole, std::int64_t tensors) const;

  const Mesh& mesh_;
  const TrainingConfig& config_;
  std::vector<int> stages_;  ///< those that hold the same slices
};

/// Parameters that are reduced, or gathered, together.
class Bucket {
 public:
  explicit Bucket(const TrainingConfig& config) : most_(config.software->bucket_parameters.value) {}
  void add(const RankParameters& parameters) { held_ += parameters; }
  bool is_full() const { return static_cast<double>(held_.total()) >= most_; }
  /// What it holds, which leaves it empty.
  RankParameters take();

 private:
  double most_;
  RankParameters held_;
};

}  // namespace orrery
