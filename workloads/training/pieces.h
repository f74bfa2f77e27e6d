// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/llm/step_list.h"
#include "workloads/parallelism/rank_parameters.h"
#include "workloads/parallelism/stages.h"
#include "workloads/training/training.h"

namespace orrery {

/// A part of the model that a pass goes through as a whole.
struct Piece {
  enum class Kind : std::uint8_t { kEmbedding, kLayer, kModule, kHead, kModuleHead };
  Kind kind = Kind::kLayer;
  std::int64_t index = 0;  ///< number of the layer, or of the module of multi-token prediction

  /// What its steps say of themselves: "layer 3 ".
  std::string name() const;
};

/// Pieces of which the chunks of a step consist, and what they do and hold.
class Pieces {
 public:
  /// @param model what is trained (trained_model)
  /// @param model, config outlive it
  Pieces(const LlmConfig& model, const TrainingConfig& config);

  const Placement& placement() const { return placement_; }
  /// In the order of a forward pass; a backward pass goes from the last to the first.
  std::vector<Piece> of(ChunkPlace place) const;
  StepList forward(const Piece& piece, const LayerWork& work) const;
  StepList backward(const Piece& piece, const LayerWork& work) const;
  /// Those of the head: without the table that the stage `rank` has as embedding.
  RankParameters parameters(const Piece& piece, int rank) const;
  const LayerConfig& layer(const Piece& piece) const;
  /// Hidden states of a token that leave a slice: behind modules, those of each of them too.
  int states_behind(int slice) const;

 private:
  const LlmConfig& model_;
  const TrainingConfig& config_;
  Placement placement_;
  std::vector<std::vector<LayerRange>> ranges_;
};

}  // namespace orrery
