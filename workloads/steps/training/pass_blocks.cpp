// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/pass_blocks.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "workloads/layers/parts/linear.h"
#include "workloads/steps/training/backward_update.h"
#include "workloads/steps/training/offload.h"
#include "workloads/steps/training/sharded_weights.h"

namespace orrery {
namespace {

bool is_forward(Pass::Kind kind) { return kind == Pass::Kind::kForward; }

std::string block_name(ChunkPlace place, Pass::Kind kind) {
  static const std::map<Pass::Kind, std::string> kNames = {
      {Pass::Kind::kForward, "forward"},
      {Pass::Kind::kBackward, "backward"},
      {Pass::Kind::kInputGradient, "input gradient"},
      {Pass::Kind::kWeightGradient, "weight gradient"},
  };
  return fmt::format("{} {}.{}", kNames.at(kind), place.rank, place.chunk);
}

}  // namespace

PassBlocks::PassBlocks(ProgramBuilder& program, const LlmConfig& model,
                       const TrainingConfig& config, bool tensors)
    : program_(program),
      model_(model),
      config_(config),
      work_(rank_work(model, config)),
      pieces_(model, config) {
  work_.passes.tensors = tensors;
}

BlockId PassBlocks::gathering_forward(ChunkPlace place) {
  gathers_ = true;
  const BlockId gathering = pass_block(place, Pass::Kind::kForward);
  gathers_ = false;
  return gathering;
}

BlockId PassBlocks::reducing(ChunkPlace place, Pass::Kind kind) {
  reduces_ = true;
  const BlockId reducing = pass_block(place, kind);
  reduces_ = false;
  return reducing;
}

RankParameters PassBlocks::take_reduced() { return std::exchange(reduced_, {}); }

bool has_weight_gradients(Pass::Kind kind) {
  return kind == Pass::Kind::kBackward || kind == Pass::Kind::kWeightGradient;
}

/// Reduces the gradients of a bucket beside what follows.
void PassBlocks::reduce(BlockBuilder& block, Bucket& bucket, int stage) {
  const RankParameters parameters = bucket.take();
  reduced_ += parameters;
  copy_gradients(block, parameters, config_);
  for (Transfer& transfer : ReplicaSync(program_.mesh(), config_, stage).reduction(parameters))
    block.beside(std::move(transfer), kDataStream);
}

RankParameters PassBlocks::gathered_once_more(RankParameters layer) const {
  const bool again = config_.recompute.granularity == Recompute::kFull &&
                     model_.mlp.intermediate > 0 && config_.software->regathers_recomputed.value;
  if (!again) return {};
  layer.split -= model_.hidden * model_.mlp.intermediate / config_.parallel.tp;
  layer.matrices -= 1;
  return layer;
}

std::vector<RankParameters> PassBlocks::units(const std::vector<Piece>& pieces, ChunkPlace place,
                                              Pass::Kind kind) const {
  const bool again = gathers_again(config_) && kind != Pass::Kind::kWeightGradient;
  // Sharded weights are gathered all; else those that the optimizer has updated.
  const bool sharded = config_.parallel.zero >= 3;
  const auto weights = [&](const Piece& piece) {
    return sharded ? pieces_.held(piece, place.rank) : pieces_.trained(piece, place.rank);
  };
  std::vector<RankParameters> units;
  for (const Piece& piece : pieces) {
    // Heads stay from one pass to the other, and gradients of an embedding read no weights.
    const bool stays = piece.kind == Piece::Kind::kHead || piece.kind == Piece::Kind::kEmbedding ||
                       piece.kind == Piece::Kind::kDecoderEmbedding;
    const bool gathers = is_forward(kind) ? gathers_ : again && !stays && !pieces_.is_there(piece);
    units.push_back(gathers ? weights(piece) : RankParameters{});
    if (!is_forward(kind) && again && pieces_.is_there(piece))
      units.back() = gathered_once_more(weights(piece));
  }
  return units;
}

BlockId PassBlocks::block(ChunkPlace place, Pass::Kind kind) {
  gathers_ = gathering_passes(model_, config_) == SyncPasses::kEvery;
  reduces_ = has_weight_gradients(kind) && reducing_passes(model_, config_) == SyncPasses::kEvery;
  const BlockId built = pass_block(place, kind);
  gathers_ = reduces_ = false;
  return built;
}

BlockId PassBlocks::pass_block(ChunkPlace place, Pass::Kind kind) {
  BlockBuilder block(program_, place.rank);
  receive(block, place, kind);
  append_pass(block, place, kind);
  send(block, place, kind);
  return block.finish(block_name(place, kind));
}

BlockId PassBlocks::side_by_side(int stage, const Pass& first, const Pass& second) {
  BlockBuilder block(program_, stage);
  std::array<BlockBuilder::Lane, 2> lanes;
  // A backward pass begins: its exchanges of results run beside attention of the forward pass, and
  // its attention beside the forward pass's (DeepSeek-V3, arXiv 2412.19437, figure 4; Megatron-Core
  // 01cf4fb models/common/model_chunk_schedule_plan.py).
  std::array<const Pass*, 2> passes = {&first, &second};
  if (is_forward(first.kind)) std::swap(passes[0], passes[1]);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const ChunkPlace place{stage, passes.at(i)->chunk};
    block.move_to(std::nullopt);
    receive(block, place, passes.at(i)->kind);
    lanes.at(i) = {steps(place, passes.at(i)->kind), block.cursor()};
  }
  block.append_side_by_side(lanes);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    // DeepSeek's DualPipe sends when both passes are done, Megatron-Core when each is.
    block.move_to(lanes.at(i).cursor);
    const auto other = lanes.at(1 - i).cursor;
    if (other && !pipeline_shape(config_).pairs) block.need(*other);
    send(block, {stage, passes.at(i)->chunk}, passes.at(i)->kind);
  }
  return block.finish(block_name({stage, first.chunk}, first.kind) + " beside " +
                      block_name({stage, second.chunk}, second.kind));
}

bool PassBlocks::scatters_messages() const {
  return config_.software->scattered_messages.value && !work_.split.sp && work_.split.tp > 1;
}

TransferId PassBlocks::message(const std::string& direction, ChunkPlace from, ChunkPlace to) {
  const int slice = std::min(pieces_.placement().slice(from), pieces_.placement().slice(to));
  const double values = pieces_.values_behind(slice, work_, scatters_messages());
  return program_.message(direction, from.rank, to.rank,
                          Bytes(values * activation_bytes(work_.formats.precision)));
}

std::optional<ChunkPlace> PassBlocks::source(ChunkPlace place, Pass::Kind kind) const {
  if (kind == Pass::Kind::kWeightGradient) return std::nullopt;
  const auto from = pieces_.placement().neighbour(place, is_forward(kind) ? -1 : 1);
  return from && from->rank != place.rank ? from : std::nullopt;
}

std::optional<ChunkPlace> PassBlocks::target(ChunkPlace place, Pass::Kind kind) const {
  if (kind == Pass::Kind::kWeightGradient) return std::nullopt;
  const auto to = pieces_.placement().neighbour(place, is_forward(kind) ? 1 : -1);
  return to && to->rank != place.rank ? to : std::nullopt;
}

/// The stream of messages which go from one chunk to another.
Stream PassBlocks::stream(Stream stream, ChunkPlace from, ChunkPlace to) const {
  if (!pieces_.placement().goes_both_ways() || to.rank > from.rank) return stream;
  return static_cast<Stream>(stream + kSendForwardDownStream - kSendForwardStream);
}

void PassBlocks::receive(BlockBuilder& block, ChunkPlace place, Pass::Kind kind) {
  const auto from = source(place, kind);
  if (!from) return;
  const bool forward = is_forward(kind);
  block.receive(message(forward ? "forward" : "backward", *from, place),
                stream(forward ? kReceiveForwardStream : kReceiveBackwardStream, *from, place));
  if (!scatters_messages()) return;
  StepList gather;
  gather.then(tensor_collective("received parts all-gather", TransferKind::kAllGather, work_,
                                model_.hidden));
  block.append("", gather);
}

void PassBlocks::send(BlockBuilder& block, ChunkPlace place, Pass::Kind kind) {
  const auto to = target(place, kind);
  if (!to) return;
  const bool forward = is_forward(kind);
  const TransferId sent = message(forward ? "forward" : "backward", place, *to);
  if (config_.software->waits_for_messages(config_.parallel.vpp))
    block.move_to(block.send(sent, kComputeStream));
  else
    block.send(sent, stream(forward ? kSendForwardStream : kSendBackwardStream, place, *to));
}

StepList PassBlocks::steps(ChunkPlace place, Pass::Kind kind) const {
  StepList all;
  for (const Piece& piece : pieces_.of_pass(place, kind))
    all.append(pieces_.steps(piece, kind, work_), piece.name());
  return all;
}

void PassBlocks::reload(BlockBuilder& block, ChunkPlace place, std::int64_t layer) {
  if (!is_offloaded(config_, pieces_.layers(place), layer)) return;
  const Piece piece{Piece::Kind::kLayer, layer};
  reloads_[layer] = block.append_beside(
      piece.name(), reload_copy(model_, pieces_.layer(piece), pieces_.work(piece, work_)));
}

/// Before a layer is computed again, or its gradients, its activations have come back; those of the
/// layer before it are on their way.
void PassBlocks::await_reloads(BlockBuilder& block, ChunkPlace place, std::int64_t layer) {
  if (!reloads_.contains(layer)) reload(block, place, layer);
  if (const auto own = reloads_.extract(layer)) block.need(own.mapped());
  if (layer > pieces_.layers(place).first) reload(block, place, layer - 1);
}

void PassBlocks::append_pass(BlockBuilder& block, ChunkPlace place, Pass::Kind kind) {
  const std::vector<Piece> pieces = pieces_.of_pass(place, kind);
  const bool sharded = config_.parallel.zero >= 2;
  const ReplicaSync sync(program_.mesh(), config_, place.rank);
  UnitGathers gathers(block, sync, config_, kind, units(pieces, place, kind));
  Bucket bucket(config_);
  std::optional<BackwardUpdate> update;
  if (config_.optimizer_in_backward && has_weight_gradients(kind))
    update.emplace(program_, block, model_, config_, place.rank);
  std::vector<OperatorId> copies;  // to the host: the last but one has ended before a layer starts
  const bool reloads = !is_forward(kind) && kind != Pass::Kind::kWeightGradient;
  for (const Piece& piece : pieces) {
    gathers.next();
    if (copies.size() > 1) block.need(copies[copies.size() - 2]);
    if (reloads && pieces_.begins_layer(piece)) await_reloads(block, place, piece.index);
    block.append(piece.name(), pieces_.steps(piece, kind, work_));
    if (is_forward(kind) && pieces_.is_offloaded(piece, place))
      copies.push_back(block.append_beside(
          piece.name(), offload_copy(model_, pieces_.layer(piece), pieces_.work(piece, work_))));
    if (update && piece.kind != Piece::Kind::kLayerAgain)
      update->add(pieces_.trained(piece, place.rank));
    if (update || !reduces_ || is_forward(kind) || piece.kind == Piece::Kind::kLayerAgain) continue;
    // A tied table gets gradients at its other end too, and that of the embedding comes last.
    const bool tied = piece.kind == Piece::Kind::kHead && model_.tied_embeddings;
    const bool table =
        piece.kind == Piece::Kind::kEmbedding || piece.kind == Piece::Kind::kDecoderEmbedding;
    if (!sharded && (tied || table)) continue;
    bucket.add(pieces_.trained(piece, place.rank));
    if (bucket.is_full()) reduce(block, bucket, place.rank);
  }
  if (update) update->finish();
  // Gradients that leave with their micro-batch leave whole.
  if (!update && reduces_ && sharded && !is_forward(kind)) reduce(block, bucket, place.rank);
}

}  // namespace orrery
