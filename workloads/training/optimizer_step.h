// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/kernel.h"
#include "workloads/llm/llm_config.h"
#include "workloads/parallelism/program_builder.h"
#include "workloads/parallelism/rank_parameters.h"
#include "workloads/training/replica_sync.h"
#include "workloads/training/training.h"

namespace orrery {

/// Bytes that the optimizer keeps of a parameter, fp32 master weight included: both moments of Adam
/// (Rajbhandari et al. 2020, ZeRO, section 3.1), the momentum of Muon and of SGD.
/// Weights of 32 bits are their own.
double optimizer_bytes(OptimizerKind kind, Precision precision, const OptimizerStates& states = {});

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

/// Moments of a rank of a stage, wherever they lie.
Bytes optimizer_moments(const LlmConfig& model, const TrainingConfig& config, int stage);

/// States of the optimizer in the device memory of a rank of a stage.
Bytes optimizer_state(const LlmConfig& model, const TrainingConfig& config, int stage);

/// Passes of Megatron-LM's mixed-precision optimizer over the gradients of `elements` parameters:
/// copied to fp32 (read 2, write 4) unless they are, under fp16 unscaled and checked (4, 4), and
/// where they are clipped read for their norm (4); empty where nothing is left.
/// Without master weights they are read as they are.
std::vector<Kernel> gradient_preparation(double elements, Precision precision,
                                         const TrainingSoftware& software, bool clipping,
                                         const OptimizerStates& states = {});

/// All passes of mixed-precision Adam: preparation, clipping (4, 4), Adam (gradient, master weight
/// and two moments: read 16, write 12), the weight cast back (4, 2) and the gradient cleared (write
/// its bytes).
std::vector<Kernel> optimizer_kernels(double elements, Precision precision,
                                      const TrainingSoftware& software);

/// The block that ends a step on a stage: gradients are scaled and reduced over replicas, clipped
/// by their norm over all ranks, the optimizer updates the shard, and with the distributed
/// optimizer the new weights are gathered, unless the next step's forward passes do that. Nothing
/// of it overlaps the last backward pass.
/// @param reduced what backward passes have reduced already
BlockId optimizer_block(ProgramBuilder& program, const LlmConfig& model,
                        const TrainingConfig& config, int stage,
                        const RankParameters& reduced = {});

}  // namespace orrery
