// SPDX-License-Identifier: Apache-2.0
// The optimizer inside the backward pass: behind each layer its gradients are reduced, its weights
// updated and the gradients freed (LOMO, arXiv 2306.09782; torchtune optimizer_in_bwd; PyTorch,
// Tensor.register_post_accumulate_grad_hook).
#pragma once

#include <vector>

#include "workloads/plan/program_builder.h"
#include "workloads/steps/training/replica_sync.h"

namespace orrery {

/// Updates the weights of a stage piece by piece of a backward pass. A reduction over replicas runs
/// beside the next piece, behind which the update waits for it: FSDP runs hooks of gradients on the
/// stream of its reductions (PyTorch, fully_shard/_fsdp_collectives.py, foreach_reduce).
class BackwardUpdate {
 public:
  /// @param program, block, model, config outlive it
  BackwardUpdate(ProgramBuilder& program, BlockBuilder& block, const LlmConfig& model,
                 const TrainingConfig& config, int stage);

  /// To be called behind the steps that give the gradients of these parameters.
  void add(const RankParameters& parameters);
  /// What waits is updated.
  void finish();

 private:
  BlockBuilder& block_;
  const Mesh& mesh_;
  const LlmConfig& model_;
  const TrainingConfig& config_;
  int stage_;
  ReplicaSync sync_;
  double stage_total_;                  ///< parameters that a rank of the stage updates
  RankParameters waiting_;              ///< parameters whose gradients are being reduced
  std::vector<OperatorId> reductions_;  ///< what their update waits for
};

/// Whether replicas reduce gradients, so that those of two pieces are there at a time.
bool updates_wait(const LlmConfig& model, const TrainingConfig& config);

/// Whether the table of the embedding has gradients from the head, or from a decoder's tokens, on,
/// and is updated behind those of the embedding.
bool shares_table(const LlmConfig& model, const TrainingConfig& config);

/// @throws config::KeyError for steps whose updates need gradients of all layers, or of all
/// micro-batches
void require_backward_update(const LlmConfig& model, const TrainingConfig& config);

}  // namespace orrery
