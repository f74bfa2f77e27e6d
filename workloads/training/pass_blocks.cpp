// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/pass_blocks.h"

#include <cstddef>
#include <utility>

#include "workloads/llm/kernels.h"
#include "workloads/llm/layers.h"
#include "workloads/llm/linear.h"
#include "workloads/training/offload.h"
#include "workloads/training/replica_sync.h"
#include "workloads/training/sharded_weights.h"

namespace orrery {
namespace {

std::string layer_name(std::int64_t index) { return "layer " + std::to_string(index) + " "; }
std::string block_name(ChunkPlace place) {
  return std::to_string(place.rank) + "." + std::to_string(place.chunk);
}

}  // namespace

PassBlocks::PassBlocks(ProgramBuilder& program, const LlmConfig& model,
                       const TrainingConfig& config, bool tensors)
    : program_(program),
      model_(model),
      config_(config),
      work_(layer_work(model, config)),
      placement_(placement_of(config)),
      ranges_(layer_ranges(model_.layer_count(), config.parallel, placement_)) {
  work_.tensors = tensors;
}

BlockId PassBlocks::gathering_forward(ChunkPlace place) {
  gathers_ = true;
  const BlockId block = forward_block(place);
  gathers_ = false;
  return block;
}

BlockId PassBlocks::reducing(ChunkPlace place, Pass::Kind kind) {
  reduces_ = true;
  const BlockId reducing = pass_block(place, kind);
  reduces_ = false;
  return reducing;
}

bool has_weight_gradients(Pass::Kind kind) {
  return kind == Pass::Kind::kBackward || kind == Pass::Kind::kWeightGradient;
}

RankParameters PassBlocks::take_reduced() { return std::exchange(reduced_, {}); }

/// Reduces the gradients of a bucket beside what follows.
void PassBlocks::reduce(BlockBuilder& block, Bucket& bucket, int stage) {
  const RankParameters parameters = bucket.take();
  reduced_ += parameters;
  copy_gradients(block, parameters, config_);
  for (Transfer& transfer : ReplicaSync(program_.mesh(), config_, stage).reduction(parameters))
    block.beside(std::move(transfer), kDataStream);
}

std::vector<RankParameters> PassBlocks::forward_units(ChunkPlace place) const {
  std::vector<RankParameters> units;
  if (has_embedding(place)) units.push_back(embedding_parameters(model_, config_.parallel.tp));
  const LayerRange layers = range(place);
  for (std::int64_t i = 0; i < layers.count; ++i) units.push_back(parameters_of(layers.first + i));
  if (has_head(place)) units.push_back(head_of(place));
  if (!gathers_) units.assign(units.size(), {});
  return units;
}

std::vector<RankParameters> PassBlocks::backward_units(ChunkPlace place, Pass::Kind kind) const {
  std::vector<RankParameters> units;
  const LayerRange layers = range(place);
  // Heads stay from one pass to the other, and gradients of an embedding read no weights.
  if (has_head(place)) units.emplace_back();
  for (std::int64_t i = layers.count; i-- > 0;) units.push_back(parameters_of(layers.first + i));
  if (has_embedding(place)) units.emplace_back();
  if (!gathers_again(config_) || kind == Pass::Kind::kWeightGradient)
    units.assign(units.size(), {});
  return units;
}

RankParameters PassBlocks::parameters_of(std::int64_t index) const {
  return trained_layer(model_, layer(index), config_);
}
RankParameters PassBlocks::head_of(ChunkPlace place) const {
  const bool same = placement_.place(0).rank == place.rank;
  return head_parameters(model_, config_.parallel.tp, same);
}

BlockId PassBlocks::block(ChunkPlace place, Pass::Kind kind) {
  gathers_ = gathering_passes(model_, config_) == SyncPasses::kEvery;
  reduces_ = has_weight_gradients(kind) && reducing_passes(model_, config_) == SyncPasses::kEvery;
  const BlockId built = pass_block(place, kind);
  gathers_ = reduces_ = false;
  return built;
}

BlockId PassBlocks::pass_block(ChunkPlace place, Pass::Kind kind) {
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

std::optional<int> PassBlocks::neighbour(ChunkPlace place, int distance) const {
  const int slice = placement_.slice(place) + distance;
  if (slice < 0 || slice >= placement_.slices()) return std::nullopt;
  const int stage = placement_.place(slice).rank;
  return stage == place.rank ? std::nullopt : std::optional(stage);
}
bool PassBlocks::has_embedding(ChunkPlace place) const {
  return config_.layers_only == 0 && placement_.slice(place) == 0;
}
bool PassBlocks::has_head(ChunkPlace place) const {
  return config_.layers_only == 0 && placement_.slice(place) == placement_.slices() - 1;
}
LayerRange PassBlocks::range(ChunkPlace place) const {
  return ranges_[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.chunk)];
}

bool PassBlocks::scatters_messages() const {
  return config_.software->scattered_messages.value && !work_.sp && work_.tp > 1;
}

TransferId PassBlocks::message(const std::string& direction, int from, int to) {
  const std::int64_t tokens = scatters_messages() ? work_.split_tokens() : work_.row_tokens();
  const double values = static_cast<double>(tokens * model_.hidden);
  return program_.message(direction, from, to, Bytes(values * activation_bytes(work_.precision)));
}

void PassBlocks::receive(BlockBuilder& block, TransferId message, Stream stream) {
  block.receive(message, stream);
  if (!scatters_messages()) return;
  StepList gather;
  gather.then(tensor_collective("received parts all-gather", TransferKind::kAllGather, work_,
                                model_.hidden));
  block.append("", gather);
}

void PassBlocks::send(BlockBuilder& block, TransferId message, Stream stream) {
  config_.software->waits_for_messages(config_.parallel.vpp) ? block.send_and_wait(message)
                                                             : block.send(message, stream);
}

BlockId PassBlocks::forward_block(ChunkPlace place) {
  BlockBuilder block(program_, place.rank);
  if (const auto before = neighbour(place, -1))
    receive(block, message("forward", *before, place.rank), kReceiveForwardStream);
  const ReplicaSync sync(program_.mesh(), config_, place.rank);
  UnitGathers gathers(block, sync, config_, Pass::Kind::kForward, forward_units(place));
  if (has_embedding(place)) {
    gathers.next();
    block.append("", embedding_forward(model_, work_));
  }
  const LayerRange layers = range(place);
  std::vector<OperatorId> copies;  // to the host: the last but one has ended before a layer starts
  for (std::int64_t i = layers.first; i < layers.first + layers.count; ++i) {
    gathers.next();
    if (copies.size() > 1) block.await(copies[copies.size() - 2]);
    block.append(layer_name(i), layer_forward(model_, layer(i), work_of(place, i)));
    if (is_offloaded(config_, layers, i))
      copies.push_back(
          block.append_beside(layer_name(i), offload_copy(model_, layer(i), work_of(place, i))));
  }
  if (has_head(place)) {
    gathers.next();
    block.append("", head_forward(model_, work_));
  }
  if (const auto next = neighbour(place, 1))
    send(block, message("forward", place.rank, *next), kSendForwardStream);
  return block.finish("forward " + block_name(place));
}

/// Before the gradients of a layer, its activations have come back; those of the layer before it
/// are on their way.
template <class PartOf>
void PassBlocks::await_reloads(BlockBuilder& block, ChunkPlace place, std::int64_t index,
                               PartOf part) {
  const LayerRange layers = range(place);
  const auto reload = [&](std::int64_t i) {
    const StepList copy = part(reload_copy(model_, layer(i), work_of(place, i)));
    if (!copy.steps().empty()) reloads_[i] = block.append_beside(layer_name(i), copy);
  };
  if (is_offloaded(config_, layers, index) && !reloads_.contains(index)) reload(index);
  if (const auto own = reloads_.extract(index)) block.await(own.mapped());
  if (index > layers.first && is_offloaded(config_, layers, index - 1)) reload(index - 1);
}

LayerWork PassBlocks::work_of(ChunkPlace place, std::int64_t index) const {
  return unit_of(recompute_units(config_.recompute, range(place)), index).work(work_, index);
}

/// Before the gradients of the last layer of a unit, all of it is computed again.
template <class PartOf>
void PassBlocks::append_again(BlockBuilder& block, ChunkPlace place, std::int64_t index,
                              PartOf part) {
  const auto units = recompute_units(config_.recompute, range(place));
  const LayerRange unit = unit_of(units, index).layers;
  if (index + 1 < unit.first + unit.count) return;
  for (std::int64_t i = unit.first; i <= index; ++i)
    block.append(layer_name(i), part(layer_again(model_, layer(i), work_of(place, i))));
}

template <class PartOf>
void PassBlocks::append_backward(BlockBuilder& block, ChunkPlace place, Pass::Kind kind,
                                 PartOf part) {
  Bucket bucket(config_);
  const auto reduce_full = [&](const RankParameters& more) {
    if (!reduces_) return;
    bucket.add(more);
    if (bucket.is_full()) reduce(block, bucket, place.rank);
  };
  const bool sharded = config_.parallel.zero >= 2;
  const ReplicaSync sync(program_.mesh(), config_, place.rank);
  UnitGathers gathers(block, sync, config_, kind, backward_units(place, kind));
  if (has_head(place)) {
    gathers.next();
    block.append("", part(head_backward(model_, work_)));
    // A tied table gets gradients at its other end too.
    if (sharded || !model_.tied_embeddings) reduce_full(head_of(place));
  }
  const LayerRange layers = range(place);
  for (std::int64_t i = layers.first + layers.count; i-- > layers.first;) {
    gathers.next();
    await_reloads(block, place, i, part);
    append_again(block, place, i, part);
    block.append(layer_name(i), part(layer_gradients(model_, layer(i), work_of(place, i))));
    reduce_full(parameters_of(i));
  }
  if (has_embedding(place)) {
    gathers.next();
    block.append("", part(embedding_backward(model_, work_)));
    if (sharded) reduce_full(embedding_parameters(model_, config_.parallel.tp));
  }
  // Gradients that leave with their micro-batch leave whole.
  if (reduces_ && sharded) reduce(block, bucket, place.rank);
}

template <class PartOf>
BlockId PassBlocks::gradient_block(ChunkPlace place, Pass::Kind kind, const std::string& name,
                                   PartOf part) {
  BlockBuilder block(program_, place.rank);
  if (const auto next = neighbour(place, 1))
    receive(block, message("backward", *next, place.rank), kReceiveBackwardStream);
  append_backward(block, place, kind, part);
  if (const auto before = neighbour(place, -1))
    send(block, message("backward", place.rank, *before), kSendBackwardStream);
  return block.finish(name + block_name(place));
}

BlockId PassBlocks::backward_block(ChunkPlace place) {
  return gradient_block(place, Pass::Kind::kBackward, "backward ",
                        [](StepList steps) { return steps; });
}
BlockId PassBlocks::input_gradient_block(ChunkPlace place) {
  return gradient_block(place, Pass::Kind::kInputGradient, "input gradient ",
                        [](const StepList& steps) { return steps.part(false); });
}
BlockId PassBlocks::weight_gradient_block(ChunkPlace place) {
  BlockBuilder block(program_, place.rank);
  append_backward(block, place, Pass::Kind::kWeightGradient,
                  [](const StepList& steps) { return steps.part(true); });
  return block.finish("weight gradient " + block_name(place));
}

const LayerConfig& PassBlocks::layer(std::int64_t index) const {
  return model_.layers[static_cast<std::size_t>(index)];
}

}  // namespace orrery
