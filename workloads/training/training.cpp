// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/training.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "workloads/llm/kernels.h"
#include "workloads/llm/layers.h"
#include "workloads/llm/linear.h"
#include "workloads/parallelism/program_builder.h"
#include "workloads/parallelism/stages.h"
#include "workloads/require.h"
#include "workloads/training/optimizer_step.h"
#include "workloads/training/replica_sync.h"

namespace orrery {
namespace {

constexpr std::size_t kPassKinds = 4;
/// Blocks of a stage by chunk and Pass::Kind; none for kinds that its schedule does not have.
using StageBlocks = std::vector<std::array<std::optional<BlockId>, kPassKinds>>;

std::optional<BlockId>& block_of(StageBlocks& blocks, const Pass& pass) {
  return blocks.at(static_cast<std::size_t>(pass.chunk))[static_cast<std::size_t>(pass.kind)];
}

/// Whether a pass ends with gradients of weights.
bool has_weight_gradients(Pass::Kind kind) {
  return kind == Pass::Kind::kBackward || kind == Pass::Kind::kWeightGradient;
}

/// Builds the blocks of all stages and chunks.
class TrainingBuilder {
 public:
  TrainingBuilder(const LlmConfig& model, const TrainingConfig& config, bool tensors)
      : model_(trained_model(model, config)),
        config_(config),
        work_(layer_work(config)),
        placement_(placement_of(config)),
        ranges_(layer_ranges(model_.layer_count(), config.parallel, placement_)),
        program_(config.parallel) {
    work_.tensors = tensors;
  }

  TrainingProgram build() {
    const PipelineSchedule& schedule = schedule_of(config_);
    TrainingProgram result;
    std::vector<std::vector<BlockId>> calls;
    for (int stage = 0; stage < config_.parallel.pp; ++stage) {
      calls.push_back(add_stage(stage, schedule.passes(pipeline_shape(config_), stage), result));
      if (config_.layers_only > 0) continue;
      result.optimizer.push_back(
          optimizer_block(program_, model_, config_, stage, std::exchange(reduced_, {})));
      calls.back().push_back(result.optimizer.back());
    }
    result.program = program_.finish(std::move(calls));
    result.program.issue = to_picoseconds(config_.software->kernel_issue.value);
    return result;
  }

 private:
  /// Adds the blocks that the passes of a stage need.
  /// @returns the block of each pass
  std::vector<BlockId> add_stage(int stage, const std::vector<Pass>& passes,
                                 TrainingProgram& result) {
    StageBlocks blocks = build_blocks(stage, passes);
    std::vector<BlockId> forward, backward, calls;
    for (const auto& kinds : blocks) {
      if (kinds.front()) forward.push_back(*kinds.front());
      for (std::size_t kind = 1; kind < kPassKinds; ++kind) {
        if (kinds[kind]) backward.push_back(*kinds[kind]);
      }
    }
    calls.reserve(passes.size() + 1);
    for (const Pass& pass : passes) calls.push_back(*block_of(blocks, pass));
    gather_in_first_passes(stage, passes, calls, forward);
    reduce_in_last_passes(stage, passes, calls, backward);
    result.forward.push_back(std::move(forward));
    result.backward.push_back(std::move(backward));
    return calls;
  }

  /// The first forward pass of each chunk gathers its weights.
  void gather_in_first_passes(int stage, const std::vector<Pass>& passes,
                              std::vector<BlockId>& calls, std::vector<BlockId>& forward) {
    if (!config_.software->weight_gather_overlap.value || !has_replicas()) return;
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
      const auto first = std::find_if(passes.begin(), passes.end(), [chunk](const Pass& pass) {
        return pass.kind == Pass::Kind::kForward && pass.chunk == chunk;
      });
      gathers_ = true;
      forward.push_back(forward_block({stage, chunk}));
      gathers_ = false;
      calls[static_cast<std::size_t>(first - passes.begin())] = forward.back();
    }
  }

  /// The last pass of each chunk that ends with gradients of weights reduces them.
  void reduce_in_last_passes(int stage, const std::vector<Pass>& passes,
                             std::vector<BlockId>& calls, std::vector<BlockId>& backward) {
    if (!config_.software->gradient_reduction_overlap.value || !has_replicas()) return;
    for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
      const auto last = std::find_if(passes.rbegin(), passes.rend(), [chunk](const Pass& pass) {
        return has_weight_gradients(pass.kind) && pass.chunk == chunk;
      });
      reduces_ = true;
      backward.push_back(pass_block({stage, chunk}, last->kind));
      reduces_ = false;
      calls[static_cast<std::size_t>(last.base() - passes.begin()) - 1] = backward.back();
    }
  }

  bool has_replicas() const {
    return config_.layers_only == 0 && (config_.parallel.dp > 1 || model_.has_moe());
  }

  /// Reduces the gradients of a full bucket beside what follows.
  void reduce_full(BlockBuilder& block, Bucket& bucket, int stage) {
    if (!bucket.is_full()) return;
    const RankParameters parameters = bucket.take();
    reduced_ += parameters;
    for (Transfer& transfer : ReplicaSync(program_.mesh(), config_, stage).reduction(parameters))
      block.beside(std::move(transfer), kDataStream);
  }

  /// Gathers weights of a part of a chunk, for which what is appended next waits.
  void gather_weights(BlockBuilder& block, int stage, const RankParameters& parameters) {
    for (Transfer& transfer : ReplicaSync(program_.mesh(), config_, stage).gather(parameters))
      block.ahead(std::move(transfer), kDataStream);
  }

  RankParameters parameters_of(std::int64_t index) const {
    return layer_parameters(model_, layer(index), config_.parallel);
  }
  RankParameters head_of(ChunkPlace place) const {
    const bool same = placement_.place(0).rank == place.rank;
    return head_parameters(model_, config_.parallel.tp, same);
  }

  StageBlocks build_blocks(int stage, const std::vector<Pass>& passes) {
    StageBlocks blocks(static_cast<std::size_t>(config_.parallel.vpp));
    for (const Pass& pass : passes) {
      require(!pass.with_next, "schedule",
              "schedule '" + config_.schedule +
                  "' runs passes side by side (with_next), which is not modelled");
      block_of(blocks, pass) = BlockId{};
    }
    for (std::size_t chunk = 0; chunk < blocks.size(); ++chunk) {
      for (std::size_t kind = 0; kind < kPassKinds; ++kind) {
        std::optional<BlockId>& block = blocks[chunk][kind];
        const ChunkPlace place{stage, static_cast<int>(chunk)};
        if (block) block = pass_block(place, static_cast<Pass::Kind>(kind));
      }
    }
    return blocks;
  }

  BlockId pass_block(ChunkPlace place, Pass::Kind kind) {
    switch (kind) {
      case Pass::Kind::kForward:
        return forward_block(place);
      case Pass::Kind::kBackward:
        return backward_block(place);
      case Pass::Kind::kInputGradient:
        return input_gradient_block(place);
      case Pass::Kind::kWeightGradient:
        break;
    }
    return weight_gradient_block(place);
  }

  /// The stage of the slice `distance` behind that of `place`; nothing where there is none, or it
  /// is on the same stage.
  std::optional<int> neighbour(ChunkPlace place, int distance) const {
    const int slice = placement_.slice(place) + distance;
    if (slice < 0 || slice >= placement_.slices()) return std::nullopt;
    const int stage = placement_.place(slice).rank;
    return stage == place.rank ? std::nullopt : std::optional(stage);
  }
  bool has_embedding(ChunkPlace place) const {
    return config_.layers_only == 0 && placement_.slice(place) == 0;
  }
  bool has_head(ChunkPlace place) const {
    return config_.layers_only == 0 && placement_.slice(place) == placement_.slices() - 1;
  }
  LayerRange range(ChunkPlace place) const {
    return ranges_[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.chunk)];
  }

  /// Whether tensor parallel ranks send parts of what all of them have.
  bool scatters_messages() const {
    return config_.software->scattered_messages.value && !work_.sp && work_.tp > 1;
  }

  /// Activations or gradients of a micro-batch; under sequence parallelism every tensor parallel
  /// rank sends its part.
  TransferId message(const std::string& direction, int from, int to) {
    const std::int64_t tokens = scatters_messages() ? work_.split_tokens() : work_.row_tokens();
    const double values = static_cast<double>(tokens * model_.hidden);
    return program_.message(direction, from, to, Bytes(values * activation_bytes(work_.precision)));
  }

  void receive(BlockBuilder& block, TransferId message, Stream stream) {
    block.receive(message, stream);
    if (!scatters_messages()) return;
    StepList gather;
    gather.then(tensor_collective("received parts all-gather", TransferKind::kAllGather, work_,
                                  model_.hidden));
    block.append("", gather);
  }

  void send(BlockBuilder& block, TransferId message, Stream stream) {
    config_.software->waits_for_messages(config_.parallel.vpp) ? block.send_and_wait(message)
                                                               : block.send(message, stream);
  }

  BlockId forward_block(ChunkPlace place) {
    BlockBuilder block(program_, place.rank);
    if (const auto before = neighbour(place, -1))
      receive(block, message("forward", *before, place.rank), kReceiveForwardStream);
    if (has_embedding(place)) {
      if (gathers_)
        gather_weights(block, place.rank, embedding_parameters(model_, config_.parallel.tp));
      block.append("", embedding_forward(model_, work_));
    }
    const LayerRange layers = range(place);
    for (std::int64_t i = layers.first; i < layers.first + layers.count; ++i) {
      if (gathers_) gather_weights(block, place.rank, parameters_of(i));
      block.append(layer_name(i), layer_forward(model_, layer(i), work_));
    }
    if (has_head(place)) {
      if (gathers_) gather_weights(block, place.rank, head_of(place));
      block.append("", head_forward(model_, work_));
    }
    if (const auto next = neighbour(place, 1))
      send(block, message("forward", place.rank, *next), kSendForwardStream);
    return block.finish("forward " + block_name(place));
  }

  /// Appends the backward steps of a chunk for which `part` is asked, last layer first.
  template <class PartOf>
  void append_backward(BlockBuilder& block, ChunkPlace place, PartOf part) {
    Bucket bucket(config_);
    if (has_head(place)) {
      block.append("", part(head_backward(model_, work_)));
      // A tied table gets gradients at its other end too.
      if (reduces_ && !model_.tied_embeddings) bucket.add(head_of(place));
    }
    const LayerRange layers = range(place);
    for (std::int64_t i = layers.first + layers.count; i-- > layers.first;) {
      block.append(layer_name(i), part(layer_backward(model_, layer(i), work_)));
      if (!reduces_) continue;
      bucket.add(parameters_of(i));
      reduce_full(block, bucket, place.rank);
    }
    if (has_embedding(place)) block.append("", part(embedding_backward(model_, work_)));
  }

  /// From the gradients of the slice behind to those of the slice before.
  template <class PartOf>
  BlockId gradient_block(ChunkPlace place, const std::string& name, PartOf part) {
    BlockBuilder block(program_, place.rank);
    if (const auto next = neighbour(place, 1))
      receive(block, message("backward", *next, place.rank), kReceiveBackwardStream);
    append_backward(block, place, part);
    if (const auto before = neighbour(place, -1))
      send(block, message("backward", place.rank, *before), kSendBackwardStream);
    return block.finish(name + block_name(place));
  }

  BlockId backward_block(ChunkPlace place) {
    return gradient_block(place, "backward ", [](StepList steps) { return steps; });
  }
  BlockId input_gradient_block(ChunkPlace place) {
    return gradient_block(place, "input gradient ",
                          [](const StepList& steps) { return steps.part(false); });
  }
  BlockId weight_gradient_block(ChunkPlace place) {
    BlockBuilder block(program_, place.rank);
    append_backward(block, place, [](const StepList& steps) { return steps.part(true); });
    return block.finish("weight gradient " + block_name(place));
  }

  const LayerConfig& layer(std::int64_t index) const {
    return model_.layers[static_cast<std::size_t>(index)];
  }
  static std::string layer_name(std::int64_t index) {
    return "layer " + std::to_string(index) + " ";
  }
  static std::string block_name(ChunkPlace place) {
    return std::to_string(place.rank) + "." + std::to_string(place.chunk);
  }

  LlmConfig model_;
  const TrainingConfig& config_;
  LayerWork work_;
  Placement placement_;
  std::vector<std::vector<LayerRange>> ranges_;
  ProgramBuilder program_;
  bool gathers_ = false;    ///< the block that is built gathers the weights of its chunk
  bool reduces_ = false;    ///< and this one reduces their gradients
  RankParameters reduced_;  ///< parameters that the stage that is built has reduced
};

}  // namespace

LayerWork layer_work(const TrainingConfig& config) {
  LayerWork work;
  work.phase = Phase::kTraining;
  work.sequences = config.micro_batch;
  work.query = config.sequence;
  work.context = config.sequence;
  work.tp = config.parallel.tp;
  work.sp = config.parallel.sp;
  work.ep = config.parallel.ep;
  work.etp = config.parallel.etp;
  work.narrow_inputs = config.narrow_inputs;
  work.precision = config.precision;
  work.flash_attention = config.flash_attention;
  work.dropout = config.dropout;
  work.recompute = config.recompute;
  work.software = config.software;
  return work;
}

LlmConfig trained_model(const LlmConfig& model, const TrainingConfig& config) {
  LlmConfig cut = model;
  if (config.layers_only > 0) {
    cut.layers.resize(std::min(cut.layers.size(), static_cast<std::size_t>(config.layers_only)));
  }
  return cut;
}

const PipelineSchedule& schedule_of(const TrainingConfig& config) {
  const std::string name = resolved_schedule(config.schedule, config.parallel.vpp);
  return *ScheduleRegistry::at("schedule", name);
}

PipelineShape pipeline_shape(const TrainingConfig& config) {
  return {.ranks = config.parallel.pp,
          .chunks = config.parallel.vpp,
          .micro_batches = config.micro_batches()};
}

Placement placement_of(const TrainingConfig& config) {
  return schedule_of(config).place(pipeline_shape(config));
}

TrainingProgram build_training(const LlmConfig& model, const TrainingConfig& config, bool tensors) {
  require_supported(model, config);
  return TrainingBuilder(model, config, tensors).build();
}

}  // namespace orrery
