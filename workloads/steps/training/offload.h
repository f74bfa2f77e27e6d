// SPDX-License-Identifier: Apache-2.0
// Activations that lie in the host's memory from a forward to a backward pass, as Transformer
// Engine (pytorch/cpu_offload.py) and Megatron-Core (--cpu-offloading, --cpu-offloading-num-layers)
// have it: behind the forward pass of a layer they are copied out beside the next one, for which
// the one after that waits, and copied back beside the gradients of the layer behind it. Copies
// both ways follow each other.
#pragma once

#include "workloads/ops/step_list.h"
#include "workloads/steps/training/training.h"

namespace orrery {

/// Whether a layer of a chunk is among those that are copied out.
bool is_offloaded(const TrainingConfig& config, LayerRange chunk, std::int64_t layer);

/// A copy of what a layer keeps to its host, where it is freed, or back, where it is made.
/// @param work what a rank does in the layer
StepList offload_copy(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);
StepList reload_copy(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);

}  // namespace orrery
