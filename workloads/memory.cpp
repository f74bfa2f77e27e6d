// SPDX-License-Identifier: Apache-2.0
#include "workloads/memory.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "sim/graph/memory_profile.h"
#include "workloads/llm/context_parallel.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/layers.h"
#include "workloads/llm/real.h"
#include "workloads/parallelism/rank_parameters.h"
#include "workloads/parallelism/stages.h"
#include "workloads/training/optimizer_step.h"
#include "workloads/training/pieces.h"
#include "workloads/training/replica_sync.h"
#include "workloads/training/sharded_weights.h"

namespace orrery {
namespace {

/// What passes do to memory, from the tensors that their steps name.
class PassMemory {
 public:
  PassMemory(const LlmConfig& model, const TrainingConfig& config)
      : config_(config), work_(layer_work(model, config)), pieces_(model, config) {
    work_.tensors = true;
  }

  /// Over all passes of a stage, in the order of the schedule; of two side by side the forward
  /// pass counts as the first.
  MemoryProfile of_stage(int stage) {
    std::map<std::pair<int, Pass::Kind>, MemoryProfile> known;
    MemoryProfile all;
    for (const Pass& pass : schedule_of(config_).passes(pipeline_shape(config_), stage)) {
      const auto [entry, added] = known.try_emplace({pass.chunk, pass.kind});
      if (added) entry->second = of_pass({stage, pass.chunk}, pass.kind);
      all.then(entry->second);
    }
    return all;
  }

 private:
  /// Passes through a layer; most layers of a model are alike.
  struct Layer {
    LayerConfig config;
    std::map<Pass::Kind, MemoryProfile> passes;
  };

  const MemoryProfile& of_layer(const Piece& piece, Pass::Kind kind) {
    const LayerConfig& config = pieces_.layer(piece);
    auto layer = std::find_if(layers_.begin(), layers_.end(),
                              [&](const Layer& other) { return other.config == config; });
    if (layer == layers_.end()) layer = layers_.insert(layer, {config, {}});
    const auto [pass, added] = layer->passes.try_emplace(kind);
    if (added) pass->second = of_piece(piece, kind);
    return pass->second;
  }

  MemoryProfile of_piece(const Piece& piece, Pass::Kind kind) const {
    return kind == Pass::Kind::kForward ? memory_profile(pieces_.forward(piece, work_))
                                        : of_part(pieces_.backward(piece, work_), kind);
  }

  MemoryProfile of_pass(ChunkPlace place, Pass::Kind kind) {
    std::vector<Piece> pieces = pieces_.of(place);
    if (kind != Pass::Kind::kForward) std::reverse(pieces.begin(), pieces.end());
    MemoryProfile all;
    for (const Piece& piece : pieces)
      all.then(piece.kind == Piece::Kind::kLayer ? of_layer(piece, kind) : of_piece(piece, kind));
    return all;
  }

  static MemoryProfile of_part(const StepList& backward, Pass::Kind kind) {
    if (kind == Pass::Kind::kBackward) return memory_profile(backward);
    return memory_profile(backward.part(kind == Pass::Kind::kWeightGradient));
  }

  const TrainingConfig& config_;
  LayerWork work_;
  Pieces pieces_;
  std::vector<Layer> layers_;
};

/// Weights, gradients and the state of the optimizer.
MemoryUse training_states(const LlmConfig& model, const TrainingConfig& config, int stage) {
  const bool with_ends = config.layers_only == 0;
  const RankParameters p = stage_parameters(model, config.parallel, placement_of(config), stage,
                                            {with_ends, config.mtp});
  const double shard = with_ends ? shard_of(p, config).total() : real(p.total());
  const bool sharded = with_ends && config.parallel.zero >= 3;
  const bool master = config.software->weight_shards.value == WeightShards::kMaster;
  MemoryUse use;
  use.weights = Bytes((sharded ? (master ? 0 : shard) : real(p.total())) * kWeightBytes);
  use.gradients = Bytes((has_fresh_gradients(config) ? shard : real(p.total())) *
                        config.software->gradient_bytes(config.precision));
  if (with_ends)
    use.optimizer = Bytes(optimizer_shard(model, config, stage).total() * kOptimizerBytes);
  return use;
}

/// Largest pair of consecutive activations of a layer in inference: input and output of its widest
/// matrix.
double inference_working(const LayerTask& task) {
  const LayerWork& w = task.work;
  const double bytes = activation_bytes(w.precision);
  const double hidden = real(task.model.hidden);
  const CoreShape c = core_shape(task);
  const double attention = real((c.query_heads + 2 * c.kv_heads) * std::max(c.qk_dim, c.v_dim));
  const double columns = task.model.mlp.gated ? 2.0 : 1.0;
  double widest = real(w.tokens()) * (hidden + attention);
  if (task.layer.moe) {
    const double skew = w.heaviest ? w.heaviest->skew : 1;
    const double rows =
        std::round(real(w.split_tokens() * task.model.moe.experts_per_token) * w.etp * skew);
    const double width = real(task.model.moe.intermediate) / w.etp;
    widest = std::max(widest, rows * (hidden + columns * width));
  } else {
    const double width = real(task.model.mlp.intermediate) / w.tp;
    widest = std::max(widest, real(w.tokens()) * (hidden + columns * width));
  }
  return (widest + real(w.tokens()) * hidden) * bytes;  // the residual stream stays
}

/// Keys and values of prompts of one layer that cp ranks gather, expanded where they are latents.
double gathered_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  if (w.cp == 1) return 0;
  const CoreShape c = core_shape(task);
  std::int64_t keys = 0;
  for (const AttentionPart& part : w.attention_parts())
    if (part.phase != Phase::kDecode) keys += gathered_keys(part, w);
  return real(keys * c.kv_heads * (c.qk_dim + c.v_dim)) * activation_bytes(w.precision);
}

/// What lies on ranks in turn is as much on each, to a token a sequence.
double cache_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  const AttentionConfig& a = task.model.attention;
  const std::int64_t window = task.layer.window;
  const auto kept = [window](std::int64_t context) {
    return window > 0 ? std::min(window, context) : context;
  };
  std::int64_t tokens = 0;
  for (const AttentionPart& part : w.attention_parts()) {
    if (part.contexts.empty()) tokens += part.sequences * kept(part.context);
    for (const std::int64_t context : part.contexts) tokens += kept(context);
  }
  const std::int64_t elements = a.kind == AttentionKind::kLatent
                                    ? a.kv_elements_per_token()
                                    : 2 * local_kv_heads(a, w.tp) * a.head_dim;
  return real(tokens * elements) * element_bytes(w.kv_precision) / (w.cp * w.dcp);
}

LayerRange stage_layers(const LlmConfig& model, const InferenceConfig& config, int stage) {
  const auto ranges = layer_ranges(model.layer_count(), config.parallel);
  return ranges[static_cast<std::size_t>(stage)].front();
}

MemoryUse inference_stage(const LlmConfig& model, const InferenceConfig& config, int stage) {
  const LayerWork work = layer_work(model, config);
  const RankParameters p = stage_parameters(model, config.parallel, stage);
  const double quantised = real(p.total() - p.sixteen_bit);
  MemoryUse use;
  use.weights = Bytes(quantised * element_bytes(config.precision) +
                      real(p.sixteen_bit) * activation_bytes(config.precision) -
                      saved_weight_bytes(model, config.parallel, stage, config.precision));
  if (config.lora)
    use.weights += adapter_bytes(model, config, stage) * real(config.lora->max_loras);
  const LayerRange range = stage_layers(model, config, stage);
  for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
    const LayerTask task{model, model.layers[static_cast<std::size_t>(i)], work};
    use.kv_cache += Bytes(cache_bytes(task));
    use.working = std::max(use.working, Bytes(inference_working(task) + gathered_bytes(task)));
  }
  if (stage == config.parallel.pp - 1) {
    // Gathered on every rank, for prefill only the last token of every sequence.
    use.logits = Bytes(real(work.logit_rows()) * real(model.vocabulary) *
                       activation_bytes(config.precision));
  }
  return use;
}

}  // namespace

Bytes layer_activation_bytes(const LlmConfig& model, const LayerConfig& layer,
                             const LayerWork& work) {
  LayerWork told = work;
  told.tensors = true;
  return memory_profile(layer_forward(model, layer, told)).left(TensorRole::kActivation);
}

std::vector<MemoryUse> training_memory(const LlmConfig& model, const TrainingConfig& config) {
  require_supported(model, config);
  const LlmConfig trained = trained_model(model, config);
  const LayerWork work = layer_work(config);
  const Bytes layer_input(real(work.row_tokens() * trained.hidden) *
                          activation_bytes(work.precision));
  PassMemory memory(trained, config);
  std::vector<MemoryUse> stages;
  for (int stage = 0; stage < config.parallel.pp; ++stage) {
    const MemoryProfile step = memory.of_stage(stage);
    MemoryUse use = training_states(trained, config, stage);
    use.activations = step.peak(TensorRole::kActivation);
    use.working = step.peak(TensorRole::kWorking);
    // A layer that is recomputed whole has its input twice, as if the second pass had its own.
    if (config.recompute == Recompute::kFull) use.working += layer_input;
    use.logits = step.peak(TensorRole::kLogits);
    const UnitMemory units = unit_memory(trained, config, stage);
    use.working += units.weights + units.gradients;
    stages.push_back(use);
  }
  return stages;
}

Bytes adapter_bytes(const LlmConfig& model, const InferenceConfig& config, int stage) {
  const LayerWork work = layer_work(config);
  const LayerRange range = stage_layers(model, config, stage);
  Bytes bytes;
  for (std::int64_t i = range.first; i < range.first + range.count; ++i)
    bytes += layer_adapter_bytes(model, model.layers[static_cast<std::size_t>(i)], work);
  return bytes;
}

std::vector<MemoryUse> inference_memory(const LlmConfig& model, const InferenceConfig& config) {
  require_supported(model, config);
  LlmConfig held = model;
  if (config.expert_routing) held.moe.redundant = config.expert_routing->redundant_experts;
  std::vector<MemoryUse> stages;
  stages.reserve(static_cast<std::size_t>(config.parallel.pp));
  for (int stage = 0; stage < config.parallel.pp; ++stage) {
    stages.push_back(inference_stage(held, config, stage));
  }
  return stages;
}

const MemoryUse& worst_stage(const std::vector<MemoryUse>& stages) {
  return *std::max_element(
      stages.begin(), stages.end(),
      [](const MemoryUse& a, const MemoryUse& b) { return a.total() < b.total(); });
}

}  // namespace orrery
