// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/pieces.h"

#include <cstddef>

#include "workloads/llm/layers.h"

namespace orrery {

std::string Piece::name() const {
  switch (kind) {
    case Kind::kLayer:
      return "layer " + std::to_string(index) + " ";
    case Kind::kModule:
    case Kind::kModuleHead:
      return "mtp " + std::to_string(index) + " ";
    case Kind::kEmbedding:
    case Kind::kHead:
      break;
  }
  return "";
}

Pieces::Pieces(const LlmConfig& model, const TrainingConfig& config)
    : model_(model),
      config_(config),
      placement_(placement_of(config)),
      ranges_(layer_ranges(model.layer_count(), config.parallel, placement_, config.mtp)) {}

std::vector<Piece> Pieces::of(ChunkPlace place) const {
  const int slice = placement_.slice(place);
  const bool ends = config_.layers_only == 0;
  const bool head = ends && slice == placement_.slices() - 1;
  const LayerRange layers =
      ranges_[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.chunk)];
  std::vector<Piece> pieces;
  if (ends && slice == 0) pieces.push_back({Piece::Kind::kEmbedding});
  for (std::int64_t i = layers.first; i < layers.first + layers.count; ++i)
    pieces.push_back({Piece::Kind::kLayer, i});
  if (ends && slice == module_slice(config_.parallel, placement_))
    for (int i = 0; i < config_.mtp; ++i) pieces.push_back({Piece::Kind::kModule, i});
  if (!head) return pieces;
  pieces.push_back({Piece::Kind::kHead});
  for (int i = 0; i < config_.mtp; ++i) pieces.push_back({Piece::Kind::kModuleHead, i});
  return pieces;
}

StepList Pieces::forward(const Piece& piece, const LayerWork& work) const {
  switch (piece.kind) {
    case Piece::Kind::kEmbedding:
      return embedding_forward(model_, work);
    case Piece::Kind::kLayer:
      return layer_forward(model_, layer(piece), work);
    case Piece::Kind::kModule:
      return module_forward(model_, work);
    case Piece::Kind::kHead:
    case Piece::Kind::kModuleHead:
      break;
  }
  return head_forward(model_, work);
}

StepList Pieces::backward(const Piece& piece, const LayerWork& work) const {
  switch (piece.kind) {
    case Piece::Kind::kEmbedding:
      return embedding_backward(model_, work);
    case Piece::Kind::kLayer:
      return layer_backward(model_, layer(piece), work);
    case Piece::Kind::kModule:
      return module_backward(model_, work);
    case Piece::Kind::kHead:
    case Piece::Kind::kModuleHead:
      break;
  }
  return head_backward(model_, work);
}

RankParameters Pieces::parameters(const Piece& piece, int rank) const {
  switch (piece.kind) {
    case Piece::Kind::kEmbedding:
      return embedding_parameters(model_, config_.parallel.tp);
    case Piece::Kind::kLayer:
      return layer_parameters(model_, layer(piece), config_.parallel);
    case Piece::Kind::kModule:
      return module_parameters(model_, config_.parallel);
    case Piece::Kind::kHead:
      return head_parameters(model_, config_.parallel.tp, placement_.holds(rank, 0));
    case Piece::Kind::kModuleHead:
      break;
  }
  return {};
}

const LayerConfig& Pieces::layer(const Piece& piece) const {
  return model_.layers[static_cast<std::size_t>(piece.index)];
}

int Pieces::states_behind(int slice) const {
  const bool behind = config_.mtp > 0 && slice >= module_slice(config_.parallel, placement_);
  return behind ? 1 + config_.mtp : 1;
}

}  // namespace orrery
