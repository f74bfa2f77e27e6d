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

/// Bytes per parameter: fp32 master weight, first and second moment (Rajbhandari et al. 2020, ZeRO,
/// section 3.1).
inline constexpr double kOptimizerBytes = 12;

/// Parameters whose optimizer state one rank of a stage holds: a share of them from zero 1 on.
OptimizerShard optimizer_shard(const LlmConfig& model, const TrainingConfig& config, int stage);

/// The passes of Megatron-LM's mixed-precision optimizer over `elements` parameters: gradient
/// copied to fp32 (read 2, write 4) unless it is, under fp16 unscaled and checked (4, 4), norm
/// (read 4), clipped (4, 4); Adam (gradient, master weight and two moments: read 16, write 12);
/// weight cast back (4, 2) and gradient cleared (write its bytes).
std::vector<Kernel> optimizer_kernels(double elements, Precision precision,
                                      const TrainingSoftware& software);

/// The block that ends a step on a stage: gradients are scaled and reduced over replicas, Adam
/// updates the shard, and with the distributed optimizer the new weights are gathered, unless the
/// next step's forward passes do that. Nothing of it overlaps the last backward pass.
/// @param reduced what backward passes have reduced already
BlockId optimizer_block(ProgramBuilder& program, const LlmConfig& model,
                        const TrainingConfig& config, int stage,
                        const RankParameters& reduced = {});

}  // namespace orrery
