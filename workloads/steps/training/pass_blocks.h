// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workloads/layers/parts/rank_work.h"
#include "workloads/plan/program_builder.h"
#include "workloads/steps/training/pieces.h"

namespace orrery {

class Bucket;

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
  /// Two passes of a stage side by side: steps of both in turn, so that what one moves runs beside
  /// the kernels of the other.
  BlockId side_by_side(int stage, const Pass& first, const Pass& second);
  /// A forward pass that gathers the weights of its chunk, layer by layer.
  BlockId gathering_forward(ChunkPlace place);
  /// A pass that reduces the gradients of its chunk, bucket by bucket.
  BlockId reducing(ChunkPlace place, Pass::Kind kind);
  /// The parameters that passes built since the last call reduce.
  RankParameters take_reduced();

 private:
  void reduce(BlockBuilder& block, Bucket& bucket, int stage);
  /// What a pass gathers for its pieces, in their order; nothing for those whose weights are there.
  std::vector<RankParameters> units(const std::vector<Piece>& pieces, ChunkPlace place,
                                    Pass::Kind kind) const;
  /// What software that drops the weights of a layer behind its recomputation gathers again for its
  /// gradients: all but the last matrix, whose gradients come next.
  RankParameters gathered_once_more(RankParameters layer) const;

  /// Whether tensor parallel ranks send parts of what all of them have.
  bool scatters_messages() const;
  /// Activations or gradients of a micro-batch that cross the end of a slice; under sequence
  /// parallelism every tensor parallel rank sends its part.
  TransferId message(const std::string& direction, ChunkPlace from, ChunkPlace to);
  Stream stream(Stream stream, ChunkPlace from, ChunkPlace to) const;
  void receive(BlockBuilder& block, ChunkPlace place, Pass::Kind kind);
  void send(BlockBuilder& block, ChunkPlace place, Pass::Kind kind);
  /// The chunk on another stage that a pass of `place` gets its input from, or gives its output to.
  std::optional<ChunkPlace> source(ChunkPlace place, Pass::Kind kind) const;
  std::optional<ChunkPlace> target(ChunkPlace place, Pass::Kind kind) const;

  StepList steps(ChunkPlace place, Pass::Kind kind) const;
  BlockId pass_block(ChunkPlace place, Pass::Kind kind);
  /// Appends the steps of a pass with what it gathers and reduces.
  void append_pass(BlockBuilder& block, ChunkPlace place, Pass::Kind kind);
  void reload(BlockBuilder& block, ChunkPlace place, std::int64_t layer);
  void await_reloads(BlockBuilder& block, ChunkPlace place, std::int64_t layer);

  ProgramBuilder& program_;
  const LlmConfig& model_;
  const TrainingConfig& config_;
  RankWork work_;
  Pieces pieces_;
  std::map<std::int64_t, OperatorId> reloads_;  ///< copies from the host by layer, not yet awaited
  bool gathers_ = false;    ///< the block that is built gathers the weights of its chunk
  bool reduces_ = false;    ///< and this one reduces their gradients
  RankParameters reduced_;  ///< parameters that blocks built so far reduce
};

}  // namespace orrery
