// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/config/schema.h"
#include "workloads/llm/llm_config.h"
#include "workloads/llm/lora.h"
#include "workloads/parallelism/rank_parameters.h"

namespace orrery {

struct TrainingConfig;

/// Adapters that are trained while the model is frozen: one a matrix, gate and up or queries, keys
/// and values together. Keys of Megatron-Bridge's LoRA (2afd2d3 src/megatron/bridge/peft/lora.py:
/// dim 32, target_modules).
struct TrainingLora {
  std::int64_t rank = 32;
  std::vector<LoraModule> target_modules = {LoraModule::kQkvProj, LoraModule::kOProj,
                                            LoraModule::kGateUpProj, LoraModule::kDownProj};
  FrozenFormat base = FrozenFormat::kAsTrained;  ///< format of frozen matrices of layers
  double dropout = 0;  ///< share of inputs that adapters drop, in front of their matrices
  static const config::Schema<TrainingLora>& schema();
};

/// Samples that are packed into each sequence and see nothing of each other.
struct PackedSamples {
  std::int64_t mean = 0;  ///< tokens of a sample; 0: sequences are not packed
  double deviation = 0;   ///< standard deviation of the tokens of a sample
  static const config::Schema<PackedSamples>& schema();

  /// Samples of equal length in a sequence of so many tokens whose attention is as much:
  /// E[l^2] / E[l] tokens each.
  std::int64_t equal_samples(std::int64_t sequence) const;
};

/// Parameters of a layer, or of a stage with its ends, that have gradients and states of the
/// optimizer on a rank: all, or those of adapters.
RankParameters trained_layer(const LlmConfig& model, const LayerConfig& layer,
                             const TrainingConfig& config);
RankParameters trained_stage(const LlmConfig& model, const TrainingConfig& config, int stage);

/// @throws config::KeyError for models whose adapters are not known, and samples that do not fit
void require_fine_tuning(const LlmConfig& model, const TrainingConfig& config);

}  // namespace orrery
