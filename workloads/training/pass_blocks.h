// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/llm/layer_work.h"
#include "workloads/parallelism/program_builder.h"
#include "workloads/parallelism/rank_parameters.h"
#include "workloads/parallelism/stages.h"
#include "workloads/training/training.h"

namespace orrery {

class Bucket;

/// Whether a pass ends with gradients of weights.
bool has_weight_gradients(Pass::Kind kind);

/// Writes the blocks of the passes of a step: one by stage, chunk and kind of pass.
class PassBlocks {
 public:
  /// @param model what is trained (trained_model)
  /// @param program, model, config outlive it
  /// @param tensors whether steps name what they keep for backward passes
  PassBlocks(ProgramBuilder& program, const LlmConfig& model, const TrainingConfig& config,
             bool tensors);

  BlockId block(ChunkPlace place, Pass::Kind kind);
  /// A forward pass that gathers the weights of its chunk, layer by layer.
  BlockId gathering_forward(ChunkPlace place);
  /// A pass that reduces the gradients of its chunk, bucket by bucket.
  BlockId reducing(ChunkPlace place, Pass::Kind kind);
  /// The parameters that passes built since the last call reduce.
  RankParameters take_reduced();

 private:
  void reduce(BlockBuilder& block, Bucket& bucket, int stage);
  /// What the passes of a chunk gather, in the order in which they need it; of a unit whose weights
  /// are there nothing.
  std::vector<RankParameters> forward_units(ChunkPlace place) const;
  std::vector<RankParameters> backward_units(ChunkPlace place, Pass::Kind kind) const;
  RankParameters parameters_of(std::int64_t index) const;
  RankParameters head_of(ChunkPlace place) const;

  /// The stage of the slice `distance` behind that of `place`; nothing where there is none, or it
  /// is on the same stage.
  std::optional<int> neighbour(ChunkPlace place, int distance) const;
  bool has_embedding(ChunkPlace place) const;
  bool has_head(ChunkPlace place) const;
  LayerRange range(ChunkPlace place) const;
  const LayerConfig& layer(std::int64_t index) const;
  LayerWork work_of(ChunkPlace place, std::int64_t index) const;

  /// Whether tensor parallel ranks send parts of what all of them have.
  bool scatters_messages() const;
  /// Activations or gradients of a micro-batch; under sequence parallelism every tensor parallel
  /// rank sends its part.
  TransferId message(const std::string& direction, int from, int to);
  void receive(BlockBuilder& block, TransferId message, Stream stream);
  void send(BlockBuilder& block, TransferId message, Stream stream);

  BlockId pass_block(ChunkPlace place, Pass::Kind kind);
  BlockId forward_block(ChunkPlace place);
  BlockId backward_block(ChunkPlace place);
  BlockId input_gradient_block(ChunkPlace place);
  BlockId weight_gradient_block(ChunkPlace place);
  /// Appends the backward steps of a chunk for which `part` is asked, last layer first.
  template <class PartOf>
  void append_backward(BlockBuilder& block, ChunkPlace place, Pass::Kind kind, PartOf part);
  template <class PartOf>
  void await_reloads(BlockBuilder& block, ChunkPlace place, std::int64_t index, PartOf part);
  template <class PartOf>
  void append_again(BlockBuilder& block, ChunkPlace place, std::int64_t index, PartOf part);
  /// From the gradients of the slice behind to those of the slice before.
  template <class PartOf>
  BlockId gradient_block(ChunkPlace place, Pass::Kind kind, const std::string& name, PartOf part);

  ProgramBuilder& program_;
  const LlmConfig& model_;
  const TrainingConfig& config_;
  LayerWork work_;
  Placement placement_;
  std::vector<std::vector<LayerRange>> ranges_;
  std::map<std::int64_t, OperatorId> reloads_;  ///< copies from the host by layer, not yet awaited
  bool gathers_ = false;    ///< the block that is built gathers the weights of its chunk
  bool reduces_ = false;    ///< and this one reduces their gradients
  RankParameters reduced_;  ///< parameters that blocks built so far reduce
};

}  // namespace orrery
