// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/fine_tuning.h"

#include <fmt/core.h>

#include <cmath>

#include "sim/config/schema.h"
#include "workloads/base/require.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/plan/stages.h"
#include "workloads/steps/training/training.h"

namespace orrery {

namespace {

bool has(const std::vector<LoraModule>& modules, LoraModule module) {
  return std::ranges::find(modules, module) != modules.end();
}

/// Whether a packed matrix is named together with a part.
bool names_twice(const std::vector<LoraModule>& modules) {
  return std::ranges::any_of(modules, [&](LoraModule module) {
    const auto packed = packed_in(module);
    return packed && has(modules, *packed);
  });
}

/// A table of the vocabulary and, of a head, its bias, without norms and positions beside it.
RankParameters table(const RankParameters& end) {
  RankParameters p;
  p.split = p.sixteen_bit = end.split;
  p.matrices = 1;
  return p;
}

bool saves(const TrainingConfig& config, SavedModule module) {
  return config.lora && config.lora->saves(module);
}

}  // namespace

const config::Schema<TrainingLora>& TrainingLora::schema() {
  using L = TrainingLora;
  static const auto schema =
      config::Schema<L>("lora", "adapters that are trained while the model is frozen")
          .optional("rank", &L::rank, "columns between the two matrices of an adapter (dim)",
                    config::between(1, 4096))
          .optional(
              "target_modules", &L::target_modules,
              "matrices with adapters: qkv_proj, o_proj, gate_up_proj, down_proj; q_proj, k_proj, "
              "v_proj, gate_proj, up_proj with an adapter of their own; latent attention: q_proj "
              "or q_a_proj and q_b_proj, kv_a_proj_with_mqa, kv_b_proj, o_proj")
          .optional("base", &L::base,
                    "how the frozen matrices of layers are stored: as they are trained, int8, nf4 "
                    "(QLoRA), nf4_double (scales in 8 bits), or gptq (groups of 128); products "
                    "widen them first")
          .optional("dropout", &L::dropout,
                    "share of its input that each adapter drops, which then keeps a copy and a "
                    "mask (lora_dropout); 0: none",
                    config::between(0, 0.99))
          .optional("modules_to_save", &L::modules_to_save,
                    "modules trained whole beside the adapters: embed_tokens, lm_head; a copy of "
                    "each beside the frozen original, as in PEFT; none where it is left out")
          .check(
              "adapters that change no matrix",
              [](const L& l) { return !l.target_modules.empty(); }, "target_modules")
          .check(
              "a packed matrix beside one of its parts, which would have two adapters: name either",
              [](const L& l) { return !names_twice(l.target_modules); }, "target_modules");
  return schema;
}

const config::Schema<PackedSamples>& PackedSamples::schema() {
  using P = PackedSamples;
  static const auto schema =
      config::Schema<P>("packed", "samples that are packed into each sequence")
          .optional("mean", &P::mean, "mean tokens of a sample; 0: sequences are not packed",
                    config::between(0, 1e8))
          .optional("deviation", &P::deviation, "standard deviation of the tokens of a sample",
                    config::between(0, 1e8))
          .shorthand("mean");
  return schema;
}

std::int64_t PackedSamples::equal_samples(std::int64_t sequence) const {
  if (mean == 0) return 1;
  const auto expected = static_cast<double>(mean);
  const double length = expected + deviation * deviation / expected;
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(sequence) / length));
}

RankParameters trained_layer(const LlmConfig& model, const LayerConfig& layer,
                             const TrainingConfig& config) {
  if (!config.lora) return layer_parameters(model, layer, config.parallel);
  return adapter_parameters(model, layer, rank_work(config));
}

RankParameters trained_stage(const LlmConfig& model, const TrainingConfig& config, int stage) {
  const bool with_ends = config.layers_only == 0;
  const Placement placement = placement_of(config);
  if (!config.lora)
    return stage_parameters(model, config.parallel, placement, stage, {with_ends, config.mtp});
  RankParameters sum;
  for (const std::int64_t i :
       layers_of_stage(model.layer_count(), config.parallel, placement, stage))
    sum += trained_layer(model, model.layer(i), config);
  return sum += saved_modules(model, config, stage);
}

bool unties_tables(const TrainingConfig& config) {
  return config.lora && !config.lora->modules_to_save.empty();
}

RankParameters saved_embedding(const LlmConfig& model, const TrainingConfig& config) {
  if (!saves(config, SavedModule::kEmbedTokens)) return {};
  return table(embedding_parameters(model, config.parallel.tp));
}

RankParameters saved_head(const LlmConfig& model, const TrainingConfig& config) {
  if (!saves(config, SavedModule::kLmHead)) return {};
  return table(head_parameters(model, config.parallel.tp, false));
}

RankParameters saved_modules(const LlmConfig& model, const TrainingConfig& config, int stage) {
  RankParameters sum;
  if (config.layers_only > 0) return sum;
  const Placement placement = placement_of(config);
  if (placement.holds(stage, 0)) sum += saved_embedding(model, config);
  if (placement.holds(stage, placement.slices() - 1)) sum += saved_head(model, config);
  return sum;
}

void require_fine_tuning(const LlmConfig& model, const TrainingConfig& config) {
  const PackedSamples& packed = config.packed;
  require(packed.mean <= config.sequence, {"packed.mean", "packed", "batch.sequence"},
          fmt::format("samples of {} tokens do not fit into sequences of {}", packed.mean,
                      config.sequence));
  require(packed.mean == 0 || (config.flash_attention && config.parallel.cp == 1),
          {"packed", "parallel.cp", "flash_attention"},
          "packed samples need flash_attention: true and parallel.cp: 1");
  require(!config.lora || config.mtp == 0, {"mtp", "lora"},
          "modules of multi-token prediction beside a frozen model are not modelled", {"0", {}});
  const bool narrow = config.lora && config.lora->base != FrozenFormat::kAsTrained;
  require(!narrow || config.parallel.zero < 3, {"lora.base", "lora", "parallel.zero"},
          "unsupported: narrow frozen weights that are gathered layer by layer (zero 3)",
          {"as_trained", {}});
  require(!config.lora || config.lora->modules_to_save.empty() || config.layers_only == 0,
          {"lora.modules_to_save", "layers_only"}, "layers alone have neither embedding nor head");
  if (config.lora) require_adapters(model, config.lora->target_modules);
}

}  // namespace orrery
