// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/figures/memory.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "workloads/base/real.h"
#include "workloads/layers/alike_layers.h"
#include "workloads/layers/attention/context_parallel.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/models/encoder_alone.h"
#include "workloads/ops/kernels.h"
#include "workloads/plan/stages.h"

namespace orrery {
namespace {

/// Values a token that the attention of a rank hands to its output projection.
double mixed_columns(const LayerTask& task) {
  if (task.layer.mixer != MixerKind::kAttention) return 0;
  const CoreShape core = core_shape(task);
  return real(core.query_heads * core.v_dim);
}

/// The most activations of a layer that are alive together in inference. Between two attentions
/// runs one compiled piece, whose caller keeps its arguments, the output of the attention and the
/// residual stream; the piece makes the stream with that output added, its norm, then input and
/// output of the function of the feed-forward part. Experts write rows of their first product, and
/// in its place those of their second (vLLM's fused_moe, intermediate_cache13).
double inference_working(const LayerTask& task) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  const double hidden = real(task.model.hidden), tokens = real(w.tokens());
  const Mixer* mixer = mixer_of(task.model, task.layer);
  const double columns = task.model.mlp.gated ? 2.0 : 1.0;
  const double mixing = tokens * (2 * hidden + (mixer ? real(mixer->widest(task)) : 0));
  if (!task.layer.feeds) return mixing * bytes;
  const double kept = tokens * (mixed_columns(task) + 3 * hidden);
  double made = 0;
  if (task.layer.moe) {
    const double skew = w.split.heaviest ? w.split.heaviest->skew : 1;
    const double rows =
        std::round(real(w.split_tokens() * task.model.moe.experts_per_token) * w.split.etp * skew);
    const double width = real(task.model.moe.intermediate) / w.split.etp;
    made = rows * (std::max(columns * width, real(task.model.expert_columns())) + width);
  } else {
    made = tokens * (columns + 1) * (real(task.mlp().intermediate) / w.split.tp);
  }
  return std::max(mixing, kept + made) * bytes;
}

/// Keys and values of prompts of one layer that cp ranks gather, expanded where they are latents.
double gathered_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  if (w.split.cp == 1 || task.layer.mixer != MixerKind::kAttention) return 0;
  const CoreShape c = core_shape(task);
  std::int64_t keys = 0;
  for (const AttentionPart& part : w.batch.attention_parts())
    if (part.phase != Phase::kDecode) keys += gathered_keys(part, w);
  return real(keys * c.kv_heads * (c.qk_dim + c.v_dim)) * activation_bytes(w.formats.precision);
}

/// What a token takes in the cache of a layer.
double token_bytes(const SequenceCache& cache, const RankWork& work) {
  return real(cache.token_elements) * element_bytes(work.formats.kv_precision) +
         real(cache.index_elements) * element_bytes(work.formats.index_precision);
}

/// What lies on ranks in turn is as much on each, to a token a sequence.
double cache_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  const Mixer* mixer = mixer_of(task.model, task.layer);
  if (mixer == nullptr) return 0;
  const std::int64_t window = task.layer.most_kept();
  const auto kept = [window](std::int64_t context) {
    return window > 0 ? std::min(window, context) : context;
  };
  std::int64_t tokens = 0, sequences = 0;
  for (const AttentionPart& part : w.batch.attention_parts()) {
    sequences += part.sequences;
    if (part.contexts.empty()) tokens += part.sequences * kept(part.context);
    for (const std::int64_t context : part.contexts) tokens += kept(context);
  }
  const SequenceCache cache = mixer->cache(task.model, task.layer, w.split.tp);
  return real(tokens) * token_bytes(cache, w) / (w.split.cp * w.split.dcp) +
         real(sequences) * cache.state_bytes;
}

MemoryUse inference_stage(const LlmConfig& model, const InferenceConfig& config, int stage) {
  const RankWork work = rank_work(model, config);
  const RankParameters p = stage_parameters(model, config.parallel, stage);
  const double quantised = real(p.quantised());
  MemoryUse use;
  use.weights = Bytes(quantised * element_bytes(config.precision) +
                      real(p.sixteen_bit) * activation_bytes(config.precision) -
                      saved_weight_bytes(model, config.parallel, stage, work));
  if (config.lora)
    use.weights += adapter_bytes(model, config, stage) * real(config.lora->max_loras);
  const LayerRange range = layers_of_stage(model.layer_count(), config.parallel, stage);
  struct LayerUse {
    Bytes cache, working;
  };
  OfAlikeLayers of_layer([&](const LayerConfig& layer) {
    const LayerTask task{model, layer, work};
    return LayerUse{Bytes(cache_bytes(task)),
                    Bytes(inference_working(task) + gathered_bytes(task))};
  });
  for (std::int64_t i = range.first; i < range.end(); ++i) {
    const LayerUse& of = of_layer(model.layer(i));
    use.kv_cache += of.cache;
    use.working = std::max(use.working, of.working);
  }
  if (const TowerWork images = tower_work(model, config); stage == 0 && images.images > 0)
    use.working = std::max(use.working, Bytes(tower_working(*model.vision, images)));
  if (stage == config.parallel.pp - 1 && !is_encoder_alone(model)) {
    // Gathered on every rank, for prefill only the last token of every sequence.
    use.logits = Bytes(real(work.logit_rows()) * real(model.vocabulary) *
                       activation_bytes(config.precision));
  }
  return use;
}

}  // namespace

StateMemory state_memory(const LlmConfig& model, const InferenceConfig& config, int stage) {
  const RankWork work = rank_work(model, config);
  const LayerRange range = layers_of_stage(model.layer_count(), config.parallel, stage);
  StateMemory memory;
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    const LayerConfig& layer = model.layer(i);
    const Mixer* mixer = mixer_of(model, layer);
    if (mixer == nullptr) continue;
    const SequenceCache cache = mixer->cache(model, layer, work.split.tp);
    const Bytes states(cache.state_bytes);
    memory.largest = std::max(memory.largest, states);
    memory.token = std::max(memory.token, Bytes(token_bytes(cache, work)));
    if (range.holds(i)) memory.sequence += states;
  }
  return memory;
}

Bytes adapter_bytes(const LlmConfig& model, const InferenceConfig& config, int stage) {
  const RankWork work = rank_work(config);
  const LayerRange range = layers_of_stage(model.layer_count(), config.parallel, stage);
  Bytes bytes;
  for (std::int64_t i = range.first; i < range.end(); ++i)
    bytes += layer_adapter_bytes(model, model.layer(i), work);
  return bytes;
}

std::vector<MemoryUse> inference_memory(const LlmConfig& model, const InferenceConfig& config) {
  require_supported(model, config);
  LlmConfig held = model;
  if (config.expert_routing) held.moe.redundant = config.expert_routing->redundant_experts;
  std::vector<MemoryUse> stages;
  stages.reserve(static_cast<std::size_t>(config.parallel.pp));
  for (int stage = 0; stage < config.parallel.pp; ++stage)
    stages.push_back(inference_stage(held, config, stage));
  return stages;
}

const MemoryUse& worst_stage(const std::vector<MemoryUse>& stages) {
  return *std::ranges::max_element(stages, {}, &MemoryUse::total);
}

}  // namespace orrery
