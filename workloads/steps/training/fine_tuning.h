// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/config/type.h"
#include "workloads/layers/parts/lora.h"
#include "workloads/layers/rank_parameters.h"

namespace orrery {

struct TrainingConfig;

/// Modules that are trained whole beside adapters, by their names in Hugging Face models.
enum class SavedModule : std::uint8_t { kEmbedTokens, kLmHead };

/// Adapters that are trained while the model is frozen: one for each matrix that is named. A packed
/// name means gate and up, or queries, keys and values, together, as in Megatron-Bridge's LoRA
/// (2afd2d3 src/megatron/bridge/peft/lora.py: dim 32, target_modules).
struct TrainingLora {
  std::int64_t rank = 32;
  std::vector<LoraModule> target_modules = {LoraModule::kQkvProj, LoraModule::kOProj,
                                            LoraModule::kGateUpProj, LoraModule::kDownProj};
  FrozenFormat base = FrozenFormat::kAsTrained;  ///< format of frozen matrices of layers
  double dropout = 0;  ///< share of inputs that adapters drop, in front of their matrices
  /// Modules of which a copy is trained whole. The frozen original stays in memory, and copies of
  /// tied tables are tied no more (PEFT peft/utils/other.py, ModulesToSaveWrapper.update:
  /// copy.deepcopy(self.original_module)).
  std::vector<SavedModule> modules_to_save = {};
  static const config::Schema<TrainingLora>& schema();

  bool saves(SavedModule module) const {
    return std::ranges::find(modules_to_save, module) != modules_to_save.end();
  }
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

/// Whether embedding and head are used as two tables where they are tied otherwise, since copies
/// are trained.
bool unties_tables(const TrainingConfig& config);

/// Parameters of the copies of embedding and head that are trained beside adapters on a rank; none
/// where they are frozen, or where all is trained.
RankParameters saved_embedding(const LlmConfig& model, const TrainingConfig& config);
RankParameters saved_head(const LlmConfig& model, const TrainingConfig& config);
/// Those of both that a stage has.
RankParameters saved_modules(const LlmConfig& model, const TrainingConfig& config, int stage);

/// @throws config::KeyError for models whose adapters are not known, and samples that do not fit
void require_fine_tuning(const LlmConfig& model, const TrainingConfig& config);

template <>
struct config::EnumNames<SavedModule> {
  static constexpr std::pair<SavedModule, const char*> values[] = {
      {SavedModule::kEmbedTokens, "embed_tokens"}, {SavedModule::kLmHead, "lm_head"}};
};

}  // namespace orrery
