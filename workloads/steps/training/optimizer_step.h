// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workloads/plan/program_builder.h"
#include "workloads/steps/training/optimizer/update_kernels.h"
#include "workloads/steps/training/replica_sync.h"

namespace orrery {

/// Bytes of the copies of 2:4 sparse weights of a rank of a stage, compressed along either side for
/// forward and data gradient products; 0 where weights are dense.
double sparse_copies(const LlmConfig& model, const TrainingConfig& config, int stage);

/// Parameters that one rank of a stage updates, of the ranks that share them out (from zero 1 on)
/// the one with most of them.
struct StageUpdate {
  double matrices = 0;  ///< elements under Muon
  double others = 0;    ///< elements under Adam, or all under SGD
  double total() const { return matrices + others; }
};

StageUpdate stage_update(const LlmConfig& model, const TrainingConfig& config, int stage);

/// Paged moments that have gone to the host, and come back for the update.
Bytes paged_moments(const TrainingConfig& config, int stage);

/// Moments of a rank of a stage, wherever they lie.
Bytes optimizer_moments(const LlmConfig& model, const TrainingConfig& config, int stage);

/// States of the optimizer in the device memory of a rank of a stage.
Bytes optimizer_state(const LlmConfig& model, const TrainingConfig& config, int stage);

/// Gradients of some parameters of a stage are scaled, and under sequence parallelism those of
/// parameters that tensor parallel ranks hold whole are added up.
void scale_gradients(BlockBuilder& block, const Mesh& mesh, const TrainingConfig& config, int stage,
                     const RankParameters& parameters);

/// What an update works on.
struct UpdatePart {
  StageUpdate update;
  Bytes paged;  ///< moments that come from the host and go back
};

/// From reduced gradients to new weights of some parameters of a stage.
void append_update(BlockBuilder& block, const Mesh& mesh, const LlmConfig& model,
                   const TrainingConfig& config, int stage, const UpdatePart& part);

/// The block that ends a step on a stage: gradients are scaled and reduced over replicas, clipped
/// by their norm over all ranks, the optimizer updates the shard, and with the distributed
/// optimizer the new weights are gathered, unless the next step's forward passes do that. Nothing
/// of it overlaps the last backward pass. Where weights are updated inside the backward pass, what
/// is left are the gathers.
/// @param reduced what backward passes have reduced already
BlockId optimizer_block(ProgramBuilder& program, const LlmConfig& model,
                        const TrainingConfig& config, int stage,
                        const RankParameters& reduced = {});

}  // namespace orrery
