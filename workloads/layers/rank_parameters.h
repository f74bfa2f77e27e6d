// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "workloads/models/llm_config.h"
#include "workloads/plan/parallel_config.h"
#include "workloads/plan/placement.h"

namespace orrery {

struct RankWork;

/// Parameters that one rank holds, by who else holds them.
struct RankParameters {
  std::int64_t split = 0;  ///< share of what the tensor parallel group splits
  std::int64_t whole =
      0;  ///< what every tensor parallel rank holds: norms, router, shared experts, latents
  std::int64_t experts = 0;  ///< share of what expert and expert tensor parallel groups split
  std::int64_t sixteen_bit =
      0;  ///< those of the above never quantised: embedding, head, norms, router
  /// Tensors that they are, as software that joins queries, keys and values, and gates with what
  /// they gate, has them: matrices, and vectors of norms and biases.
  std::int64_t matrices = 0, vectors = 0;

  std::int64_t dense() const { return split + whole; }
  std::int64_t total() const { return split + whole + experts; }
  std::int64_t quantised() const { return total() - sixteen_bit; }
  RankParameters& operator+=(const RankParameters& other);
  RankParameters operator-(const RankParameters& other) const;
};

/// Parameters of a layer by block, with the norms of each; those of attention to an encoder and the
/// biases of positions are attention's.
struct LayerHalves {
  RankParameters attention, feed;
};

LayerHalves layer_halves(const LlmConfig& model, const LayerConfig& layer,
                         const ParallelConfig& parallel);
RankParameters layer_parameters(const LlmConfig& model, const LayerConfig& layer,
                                const ParallelConfig& parallel);
RankParameters embedding_parameters(const LlmConfig& model, int tp);
/// Final norm and output projection; a copy of the embedding table where it is tied but on another
/// stage.
RankParameters head_parameters(const LlmConfig& model, int tp, bool same_stage_as_embedding);

/// The norm behind the last layer of an encoder, and the table of a decoder's tokens on a stage
/// that has not that of the encoder's.
RankParameters encoder_end_parameters(const LlmConfig& model);
RankParameters decoder_embedding_parameters(const LlmConfig& model, int tp,
                                            bool same_stage_as_embedding);

/// A module of multi-token prediction: three norms, the projection and a layer like the last.
RankParameters module_parameters(const LlmConfig& model, const ParallelConfig& parallel);

/// What a model has besides its layers.
struct ModelEnds {
  bool with = true;  ///< embedding and head
  int modules = 0;   ///< modules of multi-token prediction
};

/// All of a rank of pipeline stage `stage`, which holds the slices that `placement` gives it. A
/// stage with modules of multi-token prediction has a copy of the embedding.
RankParameters stage_parameters(const LlmConfig& model, const ParallelConfig& parallel,
                                const Placement& placement, int stage, ModelEnds ends = {});
/// What a rank holds in inference: ends included, slices dealt out in turn, and a vision tower on
/// the first stage.
RankParameters stage_parameters(const LlmConfig& model, const ParallelConfig& parallel, int stage);

/// Bytes by which the weights of a rank of a stage are smaller in inference, as its layers are
/// stored (LayerConfig), than all of them in the precision of `work`; below 0 where parts were left
/// out.
double saved_weight_bytes(const LlmConfig& model, const ParallelConfig& parallel, int stage,
                          const RankWork& work);

/// Training: parameters of the adapters of a layer on a rank.
RankParameters adapter_parameters(const LlmConfig& model, const LayerConfig& layer,
                                  const RankWork& work);

}  // namespace orrery
