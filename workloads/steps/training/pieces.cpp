// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/pieces.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "workloads/layers/layers.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/steps/training/offload.h"

namespace orrery {

std::string Piece::name() const {
  if (is_layer()) return fmt::format("layer {} ", index);
  if (kind == Kind::kModule || kind == Kind::kModuleHead) return fmt::format("mtp {} ", index);
  return kind == Kind::kDecoderEmbedding ? "decoder " : "";
}

Pieces::Pieces(const LlmConfig& model, const TrainingConfig& config)
    : model_(model),
      config_(config),
      placement_(placement_of(config)),
      ranges_(layer_ranges(model.layer_count(), config.parallel, placement_, config.mtp)),
      again_by_products_(rank_work(config).recomputes_products()) {
  std::vector<LayerRange> chunks;
  for (const auto& of_stage : ranges_)
    chunks.insert(chunks.end(), of_stage.begin(), of_stage.end());
  std::ranges::sort(chunks, {}, &LayerRange::first);
  for (const LayerRange& chunk : chunks) {
    const auto units = recompute_units(config.recompute, chunk);
    units_.insert(units_.end(), units.begin(), units.end());
  }
}

LayerRange Pieces::layers(ChunkPlace place) const {
  return ranges_[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.chunk)];
}

const RecomputeUnit& Pieces::unit(std::int64_t layer) const { return unit_of(units_, layer); }

bool Pieces::is_again(std::int64_t layer) const {
  return again_by_products_ || unit(layer).recompute == Recompute::kFull;
}

RankWork Pieces::work(const Piece& layer, RankWork of_all) const {
  const LayerKind kind = this->layer(layer).kind;
  RankWork work = unit(layer.index).work(std::move(of_all), layer.index);
  if (kind == LayerKind::kEncoder) return encoder_work(std::move(work));
  const auto begins = [&](const auto& of_stage) {
    return std::ranges::any_of(of_stage, [&](const LayerRange& range) {
      return layer.index == std::max(range.first, model_.encoder_layers()) &&
             range.holds(layer.index);
    });
  };
  work.passes.keeps_encoder_output =
      kind == LayerKind::kCross && std::ranges::any_of(ranges_, begins);
  work.passes.keeps_sources = model_.residual_block > 0 && std::ranges::any_of(ranges_, begins);
  return work;
}

bool Pieces::begins_layer(const Piece& piece) const {
  return piece.kind == Piece::Kind::kLayerAgain ||
         (piece.kind == Piece::Kind::kLayer && !is_again(piece.index));
}

bool Pieces::is_there(const Piece& piece) const {
  return piece.kind == Piece::Kind::kLayer && is_again(piece.index);
}

bool Pieces::is_offloaded(const Piece& piece, ChunkPlace place) const {
  return piece.kind == Piece::Kind::kLayer &&
         orrery::is_offloaded(config_, layers(place), piece.index);
}

std::vector<Piece> Pieces::of_stage(int stage) const {
  std::vector<Piece> all;
  for (int chunk = 0; chunk < config_.parallel.vpp; ++chunk) {
    const std::vector<Piece> more = of({stage, chunk});
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<Piece> Pieces::of_pass(ChunkPlace place, Pass::Kind kind) const {
  std::vector<Piece> last_first = of(place);
  if (kind == Pass::Kind::kForward) return last_first;
  std::vector<Piece> all;
  std::ranges::reverse(last_first);
  for (const Piece& piece : last_first) {
    if (piece.kind == Piece::Kind::kLayer && is_again(piece.index)) {
      const LayerRange unit = this->unit(piece.index).layers;
      const bool last = piece.index + 1 == unit.end();
      for (std::int64_t i = unit.first; last && i <= piece.index; ++i)
        all.push_back({Piece::Kind::kLayerAgain, i});
    }
    all.push_back(piece);
  }
  return all;
}

std::vector<Piece> Pieces::of(ChunkPlace place) const {
  const int slice = placement_.slice(place);
  const bool ends = config_.layers_only == 0;
  const bool head = ends && slice == placement_.slices() - 1;
  const LayerRange layers = this->layers(place);
  std::vector<Piece> pieces;
  if (ends && slice == 0) pieces.push_back({Piece::Kind::kEmbedding});
  const std::int64_t encoder = ends ? model_.encoder_layers() : 0;
  for (std::int64_t i = layers.first; i < layers.end(); ++i) {
    if (encoder > 0 && i == encoder) pieces.push_back({Piece::Kind::kDecoderEmbedding});
    pieces.push_back({Piece::Kind::kLayer, i});
    if (i + 1 == encoder) pieces.push_back({Piece::Kind::kEncoderEnd});
  }
  if (ends && slice == module_slice(config_.parallel, placement_))
    for (int i = 0; i < config_.mtp; ++i) pieces.push_back({Piece::Kind::kModule, i});
  if (!head) return pieces;
  pieces.push_back({Piece::Kind::kHead});
  for (int i = 0; i < config_.mtp; ++i) pieces.push_back({Piece::Kind::kModuleHead, i});
  return pieces;
}

StepList Pieces::forward(const Piece& piece, const RankWork& work) const {
  switch (piece.kind) {
    case Piece::Kind::kEmbedding:
      return embedding_forward(model_, model_.has_encoder() ? encoder_work(work) : work);
    case Piece::Kind::kEncoderEnd:
      return encoder_end_forward(model_, work);
    case Piece::Kind::kDecoderEmbedding:
      return embedding_forward(model_, work);
    case Piece::Kind::kLayer:
      return layer_forward(model_, layer(piece), this->work(piece, work));
    case Piece::Kind::kLayerAgain:
      return layer_again(model_, layer(piece), this->work(piece, work));
    case Piece::Kind::kModule:
      return module_forward(model_, work);
    case Piece::Kind::kHead:
    case Piece::Kind::kModuleHead:
      break;
  }
  return head_forward(model_, work);
}

StepList Pieces::backward(const Piece& piece, const RankWork& work) const {
  switch (piece.kind) {
    case Piece::Kind::kEmbedding:
      return embedding_backward(model_, model_.has_encoder() ? encoder_work(work) : work);
    case Piece::Kind::kEncoderEnd:
      return encoder_end_backward(model_, work);
    case Piece::Kind::kDecoderEmbedding:
      return embedding_backward(model_, work);
    case Piece::Kind::kLayer:
      return layer_gradients(model_, layer(piece), this->work(piece, work));
    case Piece::Kind::kLayerAgain:
      return layer_again(model_, layer(piece), this->work(piece, work));
    case Piece::Kind::kModule:
      return module_backward(model_, work);
    case Piece::Kind::kHead:
    case Piece::Kind::kModuleHead:
      break;
  }
  return head_backward(model_, work);
}

StepList Pieces::steps(const Piece& piece, Pass::Kind kind, const RankWork& work) const {
  if (kind == Pass::Kind::kForward) return forward(piece, work);
  StepList steps = backward(piece, work);
  if (kind == Pass::Kind::kBackward) return steps;
  return steps.part(kind == Pass::Kind::kWeightGradient);
}

Bytes Pieces::flow(const Piece& piece, const RankWork& of_all) const {
  if (piece.kind != Piece::Kind::kLayer) return {};
  return gradient_flow({model_, layer(piece), work(piece, of_all)});
}

RankParameters Pieces::held(const Piece& piece, int rank) const {
  switch (piece.kind) {
    case Piece::Kind::kEmbedding:
      return embedding_parameters(model_, config_.parallel.tp);
    case Piece::Kind::kEncoderEnd:
      return encoder_end_parameters(model_);
    case Piece::Kind::kDecoderEmbedding:
      return decoder_embedding_parameters(model_, config_.parallel.tp, placement_.holds(rank, 0));
    case Piece::Kind::kLayer:
    case Piece::Kind::kLayerAgain: {
      RankParameters all = layer_parameters(model_, layer(piece), config_.parallel);
      if (config_.lora) all += trained_layer(model_, layer(piece), config_);
      return all;
    }
    case Piece::Kind::kModule:
      return module_parameters(model_, config_.parallel);
    case Piece::Kind::kHead: {
      const bool elsewhere = placement_.holds(rank, 0) || decoder_starts_on(rank);
      return head_parameters(model_, config_.parallel.tp, elsewhere && !unties_tables(config_));
    }
    case Piece::Kind::kModuleHead:
      break;
  }
  return {};
}

RankParameters Pieces::trained(const Piece& piece, int rank) const {
  if (!config_.lora) return held(piece, rank);
  if (piece.kind == Piece::Kind::kEmbedding) return saved_embedding(model_, config_);
  if (piece.kind == Piece::Kind::kHead) return saved_head(model_, config_);
  return piece.is_layer() ? trained_layer(model_, layer(piece), config_) : RankParameters{};
}

const LayerConfig& Pieces::layer(const Piece& piece) const { return model_.layer(piece.index); }

bool Pieces::decoder_starts_on(int rank) const {
  const std::int64_t encoder = model_.encoder_layers();
  if (encoder == 0) return false;
  const std::vector<LayerRange>& chunks = ranges_[static_cast<std::size_t>(rank)];
  return std::ranges::any_of(chunks, [&](const LayerRange& chunk) { return chunk.holds(encoder); });
}

double Pieces::values_behind(int slice, const RankWork& work, bool scattered) const {
  const auto values = [&](const RankWork& of) {
    return static_cast<double>((scattered ? of.split_tokens() : of.row_tokens()) * model_.hidden);
  };
  const bool behind = config_.mtp > 0 && slice >= module_slice(config_.parallel, placement_);
  const LayerRange range = layers(placement_.place(slice));
  const double own =
      values(work) * (behind ? 1 + config_.mtp : 1) * residual_copies(model_, range.end());
  if (!model_.has_encoder()) return own;
  const bool decodes = range.end() > model_.encoder_layers();
  return values(encoder_work(work)) + (decodes ? own : 0);
}

}  // namespace orrery
