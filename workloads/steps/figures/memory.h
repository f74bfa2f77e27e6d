// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/units/units.h"
#include "workloads/steps/inference/inference.h"
#include "workloads/steps/training/training.h"

namespace orrery {

/// Device memory of one rank, by what it holds.
struct MemoryUse {
  Bytes weights;  ///< slots of adapters included
  Bytes gradients;
  Bytes optimizer;    ///< fp32 master weights, moments or momentum
  Bytes activations;  ///< kept from forward to backward passes, at their peak
  Bytes working;      ///< the most that is alive only while one layer runs
  Bytes kv_cache;
  Bytes logits;  ///< output projection and softmax of one micro-batch, on the last stage

  /// Training: "in forward pass 8 of 64": where activations, working memory and logits together
  /// have their peak.
  std::string when;

  Bytes total() const {
    return weights + gradients + optimizer + activations + working + kv_cache + logits;
  }
};

/// What a rank of every pipeline stage needs at its peak (the ranks of a stage need the same). Of
/// training, activations, working memory and logits are the peaks of the tensors that the steps of
/// its passes make and free; the three need not meet, so that their sum is an upper bound.
std::vector<MemoryUse> training_memory(const LlmConfig& model, const TrainingConfig& config);
/// What PyTorch's allocator takes of the device for that, on a rank of a stage (reserved_memory.h).
Bytes training_reserved(const LlmConfig& model, const TrainingConfig& config, int stage);
std::vector<MemoryUse> inference_memory(const LlmConfig& model, const InferenceConfig& config);

/// States of recurrent layers on a rank of a pipeline stage, and what a token takes beside them.
struct StateMemory {
  Bytes sequence;  ///< states of a sequence, of all layers of the stage
  Bytes largest;   ///< states of the layer that has the most, of all stages
  Bytes token;     ///< keys and values of the layer that has the most; 0: none keeps tokens
};
StateMemory state_memory(const LlmConfig& model, const InferenceConfig& config, int stage);

/// What one adapter of InferenceConfig::lora takes on a rank of a pipeline stage.
Bytes adapter_bytes(const LlmConfig& model, const InferenceConfig& config, int stage);

/// The stage with the largest total, the first of equals.
const MemoryUse& worst_stage(const std::vector<MemoryUse>& stages);

/// Bytes that one layer keeps per micro-batch from forward to backward, under work.passes.recompute
/// (Korthikanti et al. 2022, equations 1 to 6, by tensor).
Bytes layer_activation_bytes(const LlmConfig& model, const LayerConfig& layer,
                             const RankWork& work);

}  // namespace orrery
