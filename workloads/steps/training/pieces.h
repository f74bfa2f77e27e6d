// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/layers/rank_parameters.h"
#include "workloads/ops/step_list.h"
#include "workloads/plan/stages.h"
#include "workloads/steps/training/training.h"

namespace orrery {

/// A part of the model that a pass goes through as a whole.
struct Piece {
  enum class Kind : std::uint8_t {
    kEmbedding,
    kEncoderEnd,        ///< the norm behind an encoder
    kDecoderEmbedding,  ///< embedding of what a decoder behind an encoder reads
    kLayer,
    kLayerAgain,  ///< a layer that a backward pass computes again
    kModule,
    kHead,
    kModuleHead
  };
  Kind kind = Kind::kLayer;
  std::int64_t index = 0;  ///< number of the layer, or of the module of multi-token prediction

  /// What its steps say of themselves: "layer 3 ".
  std::string name() const;
  bool is_layer() const { return kind == Kind::kLayer || kind == Kind::kLayerAgain; }
};

/// Pieces of which the chunks of a step consist, and what they do and hold.
class Pieces {
 public:
  /// @param model what is trained (trained_model)
  /// @param model, config outlive it
  Pieces(const LlmConfig& model, const TrainingConfig& config);

  const Placement& placement() const { return placement_; }
  /// In the order of a forward pass.
  std::vector<Piece> of(ChunkPlace place) const;
  /// Pieces of all chunks of a stage.
  std::vector<Piece> of_stage(int stage) const;
  /// In the order of a pass: backward ones go from the last to the first, with the layers that they
  /// compute again before the last of their unit.
  std::vector<Piece> of_pass(ChunkPlace place, Pass::Kind kind) const;
  LayerRange layers(ChunkPlace place) const;
  /// What a rank does in a layer, as its unit of recomputation says.
  RankWork work(const Piece& layer, RankWork of_all) const;
  /// Whether a backward pass starts with the layer here.
  bool begins_layer(const Piece& piece) const;
  /// Whether the weights of a layer are there since it was computed again.
  bool is_there(const Piece& piece) const;
  /// Whether its activations lie on the host between its passes.
  bool is_offloaded(const Piece& piece, ChunkPlace place) const;
  StepList forward(const Piece& piece, const RankWork& work) const;
  StepList backward(const Piece& piece, const RankWork& work) const;
  /// Those that belong to a pass.
  StepList steps(const Piece& piece, Pass::Kind kind, const RankWork& work) const;
  /// Most bytes of gradients of activations in its backward pass; of ends none.
  Bytes flow(const Piece& piece, const RankWork& of_all) const;
  /// Weights that a rank uses of a piece, those of adapters included; of the head without the table
  /// that the stage `rank` has as embedding. Where copies are trained they are used, not originals.
  RankParameters held(const Piece& piece, int rank) const;
  /// Those of them that have gradients: all, or those of adapters and copies.
  RankParameters trained(const Piece& piece, int rank) const;
  const LayerConfig& layer(const Piece& piece) const;
  /// Values of hidden states that leave a slice with a micro-batch, on a rank of the tensor
  /// parallel group, which sends all of them or its part: behind modules of multi-token prediction,
  /// those of each of them too; in a decoder behind an encoder, the output of that as well.
  double values_behind(int slice, const RankWork& work, bool scattered) const;

 private:
  const RecomputeUnit& unit(std::int64_t layer) const;
  bool is_again(std::int64_t layer) const;
  /// Whether the table of the decoder is that of the encoder or of the head, on a stage.
  bool decoder_starts_on(int rank) const;

  const LlmConfig& model_;
  const TrainingConfig& config_;
  Placement placement_;
  std::vector<std::vector<LayerRange>> ranges_;
  std::vector<RecomputeUnit> units_;  ///< units of all chunks, in the order of their layers
  bool again_by_products_ = false;    ///< the software computes products of each layer again
};

}  // namespace orrery
