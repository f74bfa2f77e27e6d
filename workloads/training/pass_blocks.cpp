// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/pass_blocks.h"

#include <cstddef>
#include <utility>

#include "workloads/llm/kernels.h"
#include "workloads/llm/layers.h"
#include "workloads/llm/linear.h"
#include "workloads/training/offload.h"
#include "workloads/training/replica_sync.h"

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
      work_(layer_work(config)),
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
  const BlockId reducing = block(place, kind);
  reduces_ = false;
  return reducing;
}

RankParameters PassBlocks::take_reduced() { return std::exchange(reduced_, {}); }

/// Reduces the gradients of a full bucket beside what follows.
void PassBlocks::reduce_full(BlockBuilder& block, Bucket& bucket, int stage) {
  if (!bucket.is_full()) return;
  const RankParameters parameters = bucket.take();
  reduced_ += parameters;
  for (Transfer& transfer : ReplicaSync(program_.mesh(), config_, stage).reduction(parameters))
    block.beside(std::move(transfer), kDataStream);
}

/// Gathers weights of a part of a chunk, for which what is appended next waits.
void PassBlocks::gather_weights(BlockBuilder& block, int stage, const RankParameters& parameters) {
  for (Transfer& transfer : ReplicaSync(program_.mesh(), config_, stage).gather(parameters))
    block.ahead(std::move(transfer), kDataStream);
}

RankParameters PassBlocks::parameters_of(std::int64_t index) const {
  return trained_layer(model_, layer(index), config_);
}
RankParameters PassBlocks::head_of(ChunkPlace place) const {
  const bool same = placement_.place(0).rank == place.rank;
  return head_parameters(model_, config_.parallel.tp, same);
}

BlockId PassBlocks::block(ChunkPlace place, Pass::Kind kind) {
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
  if (has_embedding(place)) {
    if (gathers_)
      gather_weights(block, place.rank, embedding_parameters(model_, config_.parallel.tp));
    block.append("", embedding_forward(model_, work_));
  }
  const LayerRange layers = range(place);
  for (std::int64_t i = layers.first; i < layers.first + layers.count; ++i) {
    if (gathers_) gather_weights(block, place.rank, parameters_of(i));
    block.append(layer_name(i), layer_forward(model_, layer(i), work_of(place, i)));
    if (is_offloaded(config_, layers, i))
      block.append_beside(layer_name(i), offload_copy(model_, layer(i), work_of(place, i)));
  }
  if (has_head(place)) {
    if (gathers_) gather_weights(block, place.rank, head_of(place));
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
void PassBlocks::append_backward(BlockBuilder& block, ChunkPlace place, PartOf part) {
  Bucket bucket(config_);
  if (has_head(place)) {
    block.append("", part(head_backward(model_, work_)));
    // A tied table gets gradients at its other end too.
    if (reduces_ && !model_.tied_embeddings) bucket.add(head_of(place));
  }
  const LayerRange layers = range(place);
  for (std::int64_t i = layers.first + layers.count; i-- > layers.first;) {
    await_reloads(block, place, i, part);
    append_again(block, place, i, part);
    block.append(layer_name(i), part(layer_gradients(model_, layer(i), work_of(place, i))));
    if (!reduces_) continue;
    bucket.add(parameters_of(i));
    reduce_full(block, bucket, place.rank);
  }
  if (has_embedding(place)) block.append("", part(embedding_backward(model_, work_)));
}

template <class PartOf>
BlockId PassBlocks::gradient_block(ChunkPlace place, const std::string& name, PartOf part) {
  BlockBuilder block(program_, place.rank);
  if (const auto next = neighbour(place, 1))
    receive(block, message("backward", *next, place.rank), kReceiveBackwardStream);
  append_backward(block, place, part);
  if (const auto before = neighbour(place, -1))
    send(block, message("backward", place.rank, *before), kSendBackwardStream);
  return block.finish(name + block_name(place));
}

BlockId PassBlocks::backward_block(ChunkPlace place) {
  return gradient_block(place, "backward ", [](StepList steps) { return steps; });
}
BlockId PassBlocks::input_gradient_block(ChunkPlace place) {
  return gradient_block(place, "input gradient ",
                        [](const StepList& steps) { return steps.part(false); });
}
BlockId PassBlocks::weight_gradient_block(ChunkPlace place) {
  BlockBuilder block(program_, place.rank);
  append_backward(block, place, [](const StepList& steps) { return steps.part(true); });
  return block.finish("weight gradient " + block_name(place));
}

const LayerConfig& PassBlocks::layer(std::int64_t index) const {
  return model_.layers[static_cast<std::size_t>(index)];
}

}  // namespace orrery
