// SPDX-License-Identifier: Apache-2.0
#include "workloads/memory.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/graph/memory_profile.h"
#include "workloads/llm/attention/context_parallel.h"
#include "workloads/llm/encoder_alone.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/layer_parts.h"
#include "workloads/llm/layers.h"
#include "workloads/llm/mixer.h"
#include "workloads/llm/real.h"
#include "workloads/parallelism/rank_parameters.h"
#include "workloads/parallelism/stages.h"
#include "workloads/training/offload.h"
#include "workloads/training/optimizer_step.h"
#include "workloads/training/pieces.h"
#include "workloads/training/replica_sync.h"
#include "workloads/training/reserved_memory.h"
#include "workloads/training/sharded_weights.h"

namespace orrery {
namespace {

/// What passes do to memory, from the tensors that their steps name.
class PassMemory {
 public:
  PassMemory(const LlmConfig& model, const TrainingConfig& config)
      : config_(config),
        work_(layer_work(model, config)),
        pieces_(model, config),
        makes_gradients_(orrery::makes_gradients(config)) {
    work_.tensors = true;
  }

  /// Whether profiles have the gradients of weights, which the first backward pass makes.
  bool makes_gradients() const { return makes_gradients_; }

  /// Over all passes of a stage, in the order of the schedule.
  struct Step {
    MemoryProfile profile;
    std::string fullest;  ///< see MemoryUse::when
  };
  Step of_stage(int stage) {
    std::map<std::tuple<int, Pass::Kind, bool>, MemoryProfile> known;
    std::set<int> with_gradients;
    const std::vector<Pass> passes = schedule_of(config_).passes(pipeline_shape(config_), stage);
    Step step;
    std::size_t fullest = 0;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const Pass& pass = passes[i];
      const Bytes before = step.profile.peak();
      if (pass.with_next && i + 1 < passes.size()) {
        step.profile.then(side_by_side(stage, pass, passes[++i]));
      } else {
        const bool first = makes_gradients_ && gives_gradients(pass.kind) &&
                           with_gradients.insert(pass.chunk).second;
        const auto [entry, added] = known.try_emplace({pass.chunk, pass.kind, first});
        if (added) entry->second = of_pass({stage, pass.chunk}, pass.kind, first);
        step.profile.then(entry->second);
      }
      if (step.profile.peak() > before) fullest = i;
    }
    step.fullest = pass_text(passes, fullest);
    return step;
  }

 private:
  static std::string pass_text(const std::vector<Pass>& passes, std::size_t at) {
    const bool forward = passes[at].kind == Pass::Kind::kForward;
    return std::string("in the ") + (forward ? "forward" : "backward") + " pass of micro-batch " +
           std::to_string(passes[at].micro_batch) + ", " + std::to_string(at + 1) + " of " +
           std::to_string(passes.size()) + " passes";
  }

  /// Passes through a layer; most layers of a model are alike.
  struct Layer {
    LayerConfig config;
    LayerWork work;
    std::map<std::pair<Piece::Kind, Pass::Kind>, MemoryProfile> parts;

    bool is(const LayerConfig& other, const LayerWork& done) const {
      return other == config && done.recompute == work.recompute &&
             done.input_again == work.input_again &&
             done.keeps_encoder_output == work.keeps_encoder_output &&
             done.keeps_sources == work.keeps_sources;
    }
  };

  const MemoryProfile& of_layer(const Piece& piece, Pass::Kind kind) {
    const LayerConfig& config = pieces_.layer(piece);
    const LayerWork work = pieces_.work(piece, work_);
    auto layer = std::find_if(layers_.begin(), layers_.end(),
                              [&](const Layer& other) { return other.is(config, work); });
    if (layer == layers_.end()) layer = layers_.insert(layer, {config, work, {}});
    const auto [entry, added] = layer->parts.try_emplace({piece.kind, kind});
    if (added) entry->second = of_piece(piece, kind);
    return entry->second;
  }

  /// What a layer keeps that is copied to the host; nothing of others.
  Bytes offloaded(ChunkPlace place, std::int64_t layer) {
    const Piece piece{Piece::Kind::kLayer, layer};
    if (layer < pieces_.layers(place).first || !pieces_.is_offloaded(piece, place)) return {};
    return of_layer(piece, Pass::Kind::kForward).left(TensorRole::kActivation);
  }

  MemoryProfile of_piece(const Piece& piece, Pass::Kind kind) const {
    return kind == Pass::Kind::kForward ? memory_profile(pieces_.forward(piece, work_))
                                        : of_part(pieces_.backward(piece, work_), kind);
  }

  /// A piece with the copies to the host that end beside it, or those from it that begin.
  MemoryProfile with_copies(const Piece& piece, ChunkPlace place, Pass::Kind kind) {
    const bool layer = piece.kind == Piece::Kind::kLayer || piece.kind == Piece::Kind::kLayerAgain;
    if (!layer) return of_piece(piece, kind);
    const LayerRange chunk = pieces_.layers(place);
    const bool last = piece.index + 1 == chunk.first + chunk.count;
    MemoryProfile all;
    if (kind == Pass::Kind::kForward) {
      all.then(of_layer(piece, kind));
      all.frees(TensorRole::kActivation, offloaded(place, piece.index - 1));
      if (last) all.frees(TensorRole::kActivation, offloaded(place, piece.index));
      return all;
    }
    if (pieces_.begins_layer(piece) && kind != Pass::Kind::kWeightGradient) {
      if (last) all.makes(TensorRole::kActivation, offloaded(place, piece.index));
      all.makes(TensorRole::kActivation, offloaded(place, piece.index - 1));
    }
    all.then(of_layer(piece, kind));
    return all;
  }

  std::vector<Piece> pieces(ChunkPlace place, Pass::Kind kind) const {
    return kind == Pass::Kind::kForward ? pieces_.of(place) : pieces_.backwards(place);
  }

  /// @param first it makes the gradients of its weights, to which later ones add
  MemoryProfile of_pass(ChunkPlace place, Pass::Kind kind, bool first) {
    MemoryProfile all;
    for (const Piece& piece : pieces(place, kind))
      all.then(of_part_of_pass(piece, place, kind, first));
    return all;
  }

  /// A piece with the gradients of its weights. Those that are sharded are there whole, and copied
  /// as the software does, until they are reduced; those that a step frees are made.
  MemoryProfile of_part_of_pass(const Piece& piece, ChunkPlace place, Pass::Kind kind, bool first) {
    MemoryProfile all;
    const Bytes flow = kind == Pass::Kind::kForward ? Bytes() : pieces_.flow(piece, work_);
    all.makes(TensorRole::kWorking, flow);
    all.then(with_copies(piece, place, kind));
    all.frees(TensorRole::kWorking, flow);
    const bool frozen = config_.lora && piece.kind != Piece::Kind::kLayer;
    if (!gives_gradients(kind) || piece.kind == Piece::Kind::kLayerAgain || frozen) return all;
    const GradientMemory gradients =
        gradient_memory(pieces_.parameters(piece, place.rank), config_);
    all.makes(TensorRole::kWorking, gradients.whole);
    all.frees(TensorRole::kWorking, gradients.whole);
    if (first) all.makes(TensorRole::kGradient, gradients.kept);
    return all;
  }

  /// Pieces of both passes in turn: what the one makes, then what the other frees.
  const MemoryProfile& side_by_side(int stage, const Pass& first, const Pass& second) {
    const auto [entry, added] =
        pairs_.try_emplace({stage, first.chunk, first.kind, second.chunk, second.kind});
    if (!added) return entry->second;
    const ChunkPlace ahead{stage, first.chunk}, behind{stage, second.chunk};
    const std::vector<Piece> makes = pieces(ahead, first.kind);
    const std::vector<Piece> frees = pieces(behind, second.kind);
    for (std::size_t i = 0; i < std::max(makes.size(), frees.size()); ++i) {
      if (i < makes.size()) entry->second.then(with_copies(makes[i], ahead, first.kind));
      if (i < frees.size()) entry->second.then(with_copies(frees[i], behind, second.kind));
    }
    return entry->second;
  }

  static MemoryProfile of_part(const StepList& backward, Pass::Kind kind) {
    if (kind == Pass::Kind::kBackward) return memory_profile(backward);
    return memory_profile(backward.part(kind == Pass::Kind::kWeightGradient));
  }

  const TrainingConfig& config_;
  LayerWork work_;
  Pieces pieces_;
  bool makes_gradients_;
  std::vector<Layer> layers_;
  /// Passes side by side, by stage, chunks and kinds.
  std::map<std::tuple<int, int, Pass::Kind, int, Pass::Kind>, MemoryProfile> pairs_;
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
  const RankParameters trained = trained_stage(model, config, stage);
  const double adapters = config.lora ? real(trained.total()) : 0;
  use.weights = Bytes(((sharded ? (master ? 0 : shard) : real(p.total())) + adapters) *
                      training_bytes(config.precision));
  use.weights += Bytes(sparse_copies(model, config, stage));
  use.gradients = Bytes(
      (has_fresh_gradients(config) ? shard_of(trained, config).total() : real(trained.total())) *
      config.software->gradient_bytes(config.precision));
  if (with_ends) use.optimizer = optimizer_state(model, config, stage);
  return use;
}

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
  const LayerWork& w = task.work;
  const double bytes = activation_bytes(w.precision);
  const double hidden = real(task.model.hidden), tokens = real(w.tokens());
  const Mixer* mixer = mixer_of(task.model, task.layer);
  const double columns = task.model.mlp.gated ? 2.0 : 1.0;
  const double mixing = tokens * (2 * hidden + (mixer ? real(mixer->widest(task)) : 0));
  if (!task.layer.feeds) return mixing * bytes;
  const double kept = tokens * (mixed_columns(task) + 3 * hidden);
  double made = 0;
  if (task.layer.moe) {
    const double skew = w.heaviest ? w.heaviest->skew : 1;
    const double rows =
        std::round(real(w.split_tokens() * task.model.moe.experts_per_token) * w.etp * skew);
    const double width = real(task.model.moe.intermediate) / w.etp;
    made = rows * (std::max(columns * width, real(task.model.expert_columns())) + width);
  } else {
    made = tokens * (columns + 1) * (real(task.mlp().intermediate) / w.tp);
  }
  return std::max(mixing, kept + made) * bytes;
}

/// Keys and values of prompts of one layer that cp ranks gather, expanded where they are latents.
double gathered_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  if (w.cp == 1 || task.layer.mixer != MixerKind::kAttention) return 0;
  const CoreShape c = core_shape(task);
  std::int64_t keys = 0;
  for (const AttentionPart& part : w.attention_parts())
    if (part.phase != Phase::kDecode) keys += gathered_keys(part, w);
  return real(keys * c.kv_heads * (c.qk_dim + c.v_dim)) * activation_bytes(w.precision);
}

/// What a token takes in the cache of a layer.
double token_bytes(const SequenceCache& cache, const LayerWork& work) {
  return real(cache.token_elements) * element_bytes(work.kv_precision) +
         real(cache.index_elements) * element_bytes(work.index_precision);
}

/// What lies on ranks in turn is as much on each, to a token a sequence.
double cache_bytes(const LayerTask& task) {
  const LayerWork& w = task.work;
  const Mixer* mixer = mixer_of(task.model, task.layer);
  if (mixer == nullptr) return 0;
  const std::int64_t window = task.layer.most_kept();
  const auto kept = [window](std::int64_t context) {
    return window > 0 ? std::min(window, context) : context;
  };
  std::int64_t tokens = 0, sequences = 0;
  for (const AttentionPart& part : w.attention_parts()) {
    sequences += part.sequences;
    if (part.contexts.empty()) tokens += part.sequences * kept(part.context);
    for (const std::int64_t context : part.contexts) tokens += kept(context);
  }
  const SequenceCache cache = mixer->cache(task.model, task.layer, w.tp);
  return real(tokens) * token_bytes(cache, w) / (w.cp * w.dcp) +
         real(sequences) * cache.state_bytes;
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
                      saved_weight_bytes(model, config.parallel, stage, work));
  if (config.lora)
    use.weights += adapter_bytes(model, config, stage) * real(config.lora->max_loras);
  const LayerRange range = stage_layers(model, config, stage);
  for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
    const LayerTask task{model, model.layers[static_cast<std::size_t>(i)], work};
    use.kv_cache += Bytes(cache_bytes(task));
    use.working = std::max(use.working, Bytes(inference_working(task) + gathered_bytes(task)));
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
  const LayerWork work = layer_work(model, config);
  const LayerRange range = stage_layers(model, config, stage);
  StateMemory memory;
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    const LayerConfig& layer = model.layers[static_cast<std::size_t>(i)];
    const Mixer* mixer = mixer_of(model, layer);
    if (mixer == nullptr) continue;
    const SequenceCache cache = mixer->cache(model, layer, work.tp);
    const Bytes states(cache.state_bytes);
    memory.largest = std::max(memory.largest, states);
    memory.token = std::max(memory.token, Bytes(token_bytes(cache, work)));
    if (i >= range.first && i < range.first + range.count) memory.sequence += states;
  }
  return memory;
}

Bytes layer_activation_bytes(const LlmConfig& model, const LayerConfig& layer,
                             const LayerWork& work) {
  LayerWork told = work;
  told.tensors = true;
  return memory_profile(layer_forward(model, layer, told)).left(TensorRole::kActivation);
}

std::vector<MemoryUse> training_memory(const LlmConfig& model, const TrainingConfig& config) {
  require_supported(model, config);
  const LlmConfig trained = trained_model(model, config);
  PassMemory memory(trained, config);
  std::vector<MemoryUse> stages;
  for (int stage = 0; stage < config.parallel.pp; ++stage) {
    const auto [step, fullest] = memory.of_stage(stage);
    MemoryUse use = training_states(trained, config, stage);
    use.activations = step.at_peak(TensorRole::kActivation);
    use.working = step.at_peak(TensorRole::kWorking) + unit_weights(trained, config, stage);
    use.logits = step.at_peak(TensorRole::kLogits);
    if (memory.makes_gradients()) use.gradients = step.at_peak(TensorRole::kGradient);
    use.when = "on stage " + std::to_string(stage) + " " + fullest;
    stages.push_back(use);
  }
  return stages;
}

Bytes training_reserved(const LlmConfig& model, const TrainingConfig& config, int stage) {
  const LlmConfig trained = trained_model(model, config);
  const MemoryUse use = training_states(trained, config, stage);
  return reserved_memory(trained, config, stage, {use.weights, use.gradients, use.optimizer});
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
