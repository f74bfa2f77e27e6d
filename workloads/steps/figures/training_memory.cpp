// SPDX-License-Identifier: Apache-2.0
// Memory of training steps (workloads/steps/figures/memory.h).
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sim/graph/memory_profile.h"
#include "workloads/base/real.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/backward_update.h"
#include "workloads/steps/training/memory/kept_messages.h"
#include "workloads/steps/training/memory/reserved_memory.h"
#include "workloads/steps/training/optimizer_step.h"
#include "workloads/steps/training/pass_blocks.h"
#include "workloads/steps/training/sharded_weights.h"

namespace orrery {
namespace {

/// What passes do to memory, from the tensors that their steps name.
bool has_input_gradients(Pass::Kind kind) {
  return kind == Pass::Kind::kBackward || kind == Pass::Kind::kInputGradient;
}

class PassMemory {
 public:
  PassMemory(const LlmConfig& model, const TrainingConfig& config)
      : model_(model),
        config_(config),
        work_(rank_work(model, config)),
        pieces_(model, config),
        makes_gradients_(orrery::makes_gradients(config)) {
    work_.passes.tensors = true;
  }

  /// Whether profiles have the gradients of weights, which the first backward pass makes.
  bool makes_gradients() const { return makes_gradients_; }

  /// Buffers for the gradients of what a stage sends, of all micro-batches. Those for activations
  /// are inputs of layers.
  Bytes gradient_messages(int stage) const {
    Bytes all;
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk)
      all += kept_messages(pieces_, work_, {stage, chunk}).sent;
    return all * static_cast<double>(micro_batches(config_));
  }

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
        const bool first = makes_gradients_ && has_weight_gradients(pass.kind) &&
                           with_gradients.insert(pass.chunk).second;
        const auto [entry, added] = known.try_emplace({pass.chunk, pass.kind, first});
        if (added) entry->second = of_pass({stage, pass.chunk}, pass.kind, first);
        step.profile.then(entry->second);
      }
      if (step.profile.peak() > before) fullest = i;
    }
    step.fullest = pass_text(passes, fullest);
    const Bytes before = step.profile.peak();
    const StepCopies copies = step_copies(stage_update(model_, config_, stage).total(), config_);
    step.profile.makes(TensorRole::kWorking, copies.flat + copies.wide);
    step.profile.frees(TensorRole::kWorking, copies.flat + copies.wide);
    if (step.profile.peak() > before) step.fullest = "in the optimizer step";
    return step;
  }

 private:
  static std::string pass_text(const std::vector<Pass>& passes, std::size_t at) {
    const bool forward = passes[at].kind == Pass::Kind::kForward;
    return fmt::format("in the {} pass of micro-batch {}, {} of {} passes",
                       forward ? "forward" : "backward", passes[at].micro_batch, at + 1,
                       passes.size());
  }

  /// Passes through a layer; most layers of a model are alike.
  struct Layer {
    LayerConfig config;
    TrainingPasses passes;
    std::map<std::pair<Piece::Kind, Pass::Kind>, MemoryProfile> parts;
  };

  const MemoryProfile& of_layer(const Piece& piece, Pass::Kind kind) {
    const LayerConfig& config = pieces_.layer(piece);
    const TrainingPasses passes = pieces_.work(piece, work_).passes;
    auto layer = std::ranges::find_if(layers_, [&](const Layer& other) {
      return other.config == config && other.passes == passes;
    });
    if (layer == layers_.end()) layer = layers_.insert(layer, {config, passes, {}});
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
    return memory_profile(pieces_.steps(piece, kind, work_));
  }

  /// A piece with the copies to the host that end beside it, or those from it that begin.
  MemoryProfile with_copies(const Piece& piece, ChunkPlace place, Pass::Kind kind) {
    if (!piece.is_layer()) return of_piece(piece, kind);
    const bool last = piece.index + 1 == pieces_.layers(place).end();
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

  /// @param first it makes the gradients of its weights, to which later ones add
  MemoryProfile of_pass(ChunkPlace place, Pass::Kind kind, bool first) {
    MemoryProfile all;
    const Bytes buckets = kind == Pass::Kind::kForward ? Bytes() : bucket_buffers(config_);
    all.makes(TensorRole::kWorking, buckets);
    Bytes waiting;  // gradients that are being reduced
    for (const Piece& piece : pieces_.of_pass(place, kind)) {
      all.then(of_part_of_pass(piece, place, kind, first));
      if (!config_.optimizer_in_backward || !has_weight_gradients(kind) ||
          piece.kind == Piece::Kind::kLayerAgain)
        continue;
      all.frees(TensorRole::kGradient, waiting);
      waiting = kept_gradients(pieces_.trained(piece, place.rank));
      if (updates_wait(model_, config_)) continue;
      all.frees(TensorRole::kGradient, std::exchange(waiting, {}));
    }
    if (waiting.base() > 0) all.frees(TensorRole::kGradient, waiting);
    all.frees(TensorRole::kWorking, buckets);
    const Bytes sent = kept_messages(pieces_, work_, place).sent;
    if (kind == Pass::Kind::kForward) all.makes(TensorRole::kActivation, sent);
    if (has_input_gradients(kind)) all.frees(TensorRole::kActivation, sent);
    return all;
  }

  Bytes kept_gradients(const RankParameters& parameters) const {
    return gradient_memory(parameters, config_).kept;
  }

  /// Gradients of weights that the first backward pass makes in a piece. The head makes the
  /// gradient of a table that the embedding of the same stage shares, and the embedding adds to it.
  Bytes made_gradients(const Piece& piece, int rank) const {
    const Bytes own = kept_gradients(pieces_.trained(piece, rank));
    const Placement& placement = pieces_.placement();
    const bool both = placement.holds(rank, 0) && placement.holds(rank, placement.slices() - 1);
    if (!both || !shares_table(model_, config_)) return own;
    if (piece.kind == Piece::Kind::kEmbedding) return {};
    return piece.kind == Piece::Kind::kHead
               ? own + kept_gradients(pieces_.trained({Piece::Kind::kEmbedding}, rank))
               : own;
  }

  /// A piece with the gradients of its weights. Those that are sharded are there whole, and copied
  /// as the software does, until they are reduced; those that a step frees are made.
  MemoryProfile of_part_of_pass(const Piece& piece, ChunkPlace place, Pass::Kind kind, bool first) {
    MemoryProfile all;
    const Bytes flow = kind == Pass::Kind::kForward ? Bytes() : pieces_.flow(piece, work_);
    all.makes(TensorRole::kWorking, flow);
    all.then(with_copies(piece, place, kind));
    all.frees(TensorRole::kWorking, flow);
    if (!has_weight_gradients(kind) || piece.kind == Piece::Kind::kLayerAgain) return all;
    const GradientMemory gradients = gradient_memory(pieces_.trained(piece, place.rank), config_);
    all.makes(TensorRole::kWorking, gradients.whole);
    all.frees(TensorRole::kWorking, gradients.whole);
    if (first) all.makes(TensorRole::kGradient, made_gradients(piece, place.rank));
    return all;
  }

  /// Pieces of both passes in turn: what the one makes, then what the other frees.
  const MemoryProfile& side_by_side(int stage, const Pass& first, const Pass& second) {
    const auto [entry, added] =
        pairs_.try_emplace({stage, first.chunk, first.kind, second.chunk, second.kind});
    if (!added) return entry->second;
    const ChunkPlace ahead{stage, first.chunk}, behind{stage, second.chunk};
    const std::vector<Piece> makes = pieces_.of_pass(ahead, first.kind);
    const std::vector<Piece> frees = pieces_.of_pass(behind, second.kind);
    for (std::size_t i = 0; i < std::max(makes.size(), frees.size()); ++i) {
      if (i < makes.size()) entry->second.then(with_copies(makes[i], ahead, first.kind));
      if (i < frees.size()) entry->second.then(with_copies(frees[i], behind, second.kind));
    }
    return entry->second;
  }

  const LlmConfig& model_;
  const TrainingConfig& config_;
  RankWork work_;
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
  const RankParameters saved = saved_modules(model, config, stage);
  const double adapters = config.lora ? real((trained - saved).total()) : 0;
  const double copies = sharded ? shard_of(saved, config).total() : real(saved.total());
  const double wide = training_bytes(config.precision);
  const bool of_optimizer = sharded && master && !config.lora;
  const double held = of_optimizer ? 0 : sharded ? shard : real(p.total());
  use.weights = Bytes((held + adapters + copies) * wide);
  if (config.lora)
    use.weights -= Bytes(real(p.quantised()) * (wide - frozen_bytes(config.lora->base, wide)));
  use.weights += Bytes(sparse_copies(model, config, stage));
  use.gradients = Bytes(
      (has_fresh_gradients(config) ? shard_of(trained, config).total() : real(trained.total())) *
      config.software->gradient_bytes(config.precision));
  if (with_ends) use.optimizer = optimizer_state(model, config, stage);
  return use;
}

/// The largest frozen matrix of a stage as products read it, where it is stored in fewer bits.
Bytes widened_weights(const LlmConfig& model, const TrainingConfig& config, int stage) {
  if (!config.lora || config.lora->base == FrozenFormat::kAsTrained) return {};
  const RankWork work = rank_work(model, config);
  Bytes largest;
  for (const std::int64_t i :
       layers_of_stage(model.layer_count(), config.parallel, placement_of(config), stage))
    largest = std::max(largest, widening_bytes({model, model.layer(i), work}));
  return largest;
}

}  // namespace

Bytes layer_activation_bytes(const LlmConfig& model, const LayerConfig& layer,
                             const RankWork& work) {
  RankWork told = work;
  told.passes.tensors = true;
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
    use.activations = step.at_peak(TensorRole::kActivation) + memory.gradient_messages(stage);
    use.working = step.at_peak(TensorRole::kWorking) + unit_weights(trained, config, stage) +
                  widened_weights(trained, config, stage);
    use.logits = step.at_peak(TensorRole::kLogits);
    if (memory.makes_gradients()) use.gradients = step.at_peak(TensorRole::kGradient);
    use.when = fmt::format("on stage {} {}", stage, fullest);
    stages.push_back(use);
  }
  return stages;
}

Bytes training_reserved(const LlmConfig& model, const TrainingConfig& config, int stage) {
  const LlmConfig trained = trained_model(model, config);
  const MemoryUse use = training_states(trained, config, stage);
  return reserved_memory(trained, config, stage, {use.weights, use.gradients, use.optimizer});
}

}  // namespace orrery
