// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/memory/gathered_weights.h"

#include <algorithm>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"
#include "workloads/steps/training/sharded_weights.h"

namespace orrery {
namespace {

constexpr int kGatherStream = 1;

}  // namespace

std::vector<std::int64_t> matrix_bytes(const RankParameters& parameters, double element) {
  const std::int64_t count = std::max<std::int64_t>(1, parameters.matrices);
  const double bytes = real(parameters.total()) * element;
  if (bytes <= 0) return {};
  return std::vector<std::int64_t>(static_cast<std::size_t>(count),
                                   whole_bytes(bytes / real(count)));
}

GatheredWeights::GatheredWeights(CachingAllocator& allocator, const LlmConfig& model,
                                 const TrainingConfig& config, const Pieces& pieces, int stage)
    : allocator_(allocator),
      model_(model),
      config_(config),
      pieces_(pieces),
      stage_(stage),
      gathers_(config.parallel.zero >= 3 && config.layers_only == 0) {}

double GatheredWeights::bytes_of(const Piece& piece) const {
  return real(pieces_.held(piece, stage_).total()) * training_bytes(config_.precision);
}

GatheredWeights::Handles GatheredWeights::copies(const Piece& piece) {
  return allocator_.allocate(
      matrix_bytes(pieces_.held(piece, stage_), training_bytes(config_.precision)));
}

bool GatheredWeights::stays(const Piece& layer) const {
  if (!gathers_again(config_)) return true;
  return config_.software->last_layer_stays.value && layer.index + 1 == model_.layer_count();
}

void GatheredWeights::gather(const std::vector<Piece>& pieces, std::size_t at) {
  if (!gathers_) return;
  const Piece& piece = pieces[at];
  const bool root = config_.software->end_units.value == EndUnits::kRoot;
  if (at == 0 && root) gather_root(pieces);
  if (!piece.is_layer()) {
    gather_end(piece);
    return;
  }
  Handles& weights = stays(piece) ? layers_[piece.index] : weights_;
  if (!weights.empty()) return;
  allocator_.release(ahead_);
  weights = copies(piece);
  if (at + 1 >= pieces.size() || config_.software->gather_copies.value != Fusion::kApart) return;
  if (root && !pieces[at + 1].is_layer()) return;
  ahead_.push_back(allocator_.allocate(whole_bytes(bytes_of(pieces[at + 1])), kGatherStream));
}

/// One buffer for all ends of a stage.
void GatheredWeights::gather_root(const std::vector<Piece>& pieces) {
  if (!ends_.empty() || config_.software->gather_copies.value != Fusion::kApart) return;
  double bytes = 0;
  for (const Piece& piece : pieces)
    if (!piece.is_layer()) bytes += bytes_of(piece);
  if (bytes == 0) return;
  const CachingAllocator::Handle buffer = allocator_.allocate(whole_bytes(bytes), kGatherStream);
  for (const Piece& piece : pieces)
    if (!piece.is_layer()) gather_end(piece);
  allocator_.free(buffer);
}

void GatheredWeights::gather_end(const Piece& piece) {
  const auto [entry, added] = ends_.try_emplace(static_cast<int>(piece.kind));
  if (!added) return;
  // That of the root is one for all ends.
  const bool buffer = config_.software->end_units.value == EndUnits::kApart &&
                      config_.software->gather_copies.value == Fusion::kApart && ahead_.empty();
  if (buffer) allocator_.free(allocator_.allocate(whole_bytes(bytes_of(piece)), kGatherStream));
  entry->second = copies(piece);
}

void GatheredWeights::leave(const Piece& piece) {
  if (piece.kind != Piece::Kind::kLayerAgain) allocator_.release(weights_);
  if (piece.kind != Piece::Kind::kEmbedding ||
      config_.software->end_units.value != EndUnits::kApart)
    return;
  const auto entry = ends_.find(static_cast<int>(piece.kind));
  if (entry == ends_.end()) return;
  allocator_.release(entry->second);
  ends_.erase(entry);
}

void GatheredWeights::end_pass() {
  allocator_.release(ahead_);
  allocator_.release(weights_);
}

void GatheredWeights::end_step() {
  for (auto& [kind, handles] : ends_) allocator_.release(handles);
  ends_.clear();
  for (auto& [index, handles] : layers_) allocator_.release(handles);
  layers_.clear();
}

}  // namespace orrery
