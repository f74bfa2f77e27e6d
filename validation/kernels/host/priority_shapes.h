// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "host/attention_shapes.h"
#include "host/gemm_shapes.h"

namespace orrery::measure {

/// Routed experts of one layer; each is a gated feed-forward network.
struct ExpertLayer {
  int experts = 0, top_k = 0;  ///< experts of the layer, and experts that each token is sent to
  std::int64_t ffn = 0;
};

/// One layer, and the vocabulary head, of a model on one rank.
struct PriorityModel {
  const char* name = "";        ///< name in configs/models
  int parallel = 1;             ///< tensor-parallel ranks that share each weight
  std::int64_t hidden = 0;      ///< width of the whole model, like `ffn` and `vocabulary`
  std::int64_t ffn = 0;         ///< columns of a dense or shared MLP, or 0 without one
  std::int64_t vocabulary = 0;  ///< 0: the head is not measured
  AttentionHeads heads = {};    ///< heads before tensor parallelism, or 0 with latent attention
  ExpertLayer experts = {};
  std::vector<GemmShape> latent = {};  ///< projections of latent attention; m is 0

  AttentionHeads rank_heads() const {
    return {heads.heads / parallel, heads.kv_heads / parallel, heads.head_dim};
  }
};

/// Models of `--priority`, the most important first.
const std::vector<PriorityModel>& priority_models();

/// Weights (n, k) of a layer on one rank; m is 0.
std::vector<GemmShape> layer_weights(const PriorityModel& model);

// Shapes of all models in the order of priority_models(). Within a model the order is random but
// always the same, so that a sweep cut short in a model still spreads over its sizes.

/// Weights of layers by all rows of gemm_rows(), of at most `most_flops`. Heads have up to 512
/// rows, because engines apply them to the last token of each sequence.
std::vector<GemmShape> priority_gemm_shapes(double most_flops);

/// GEMMs long enough to settle clock and power: one of decode, one of prefill, of the first model.
std::vector<GemmShape> priority_steady_shapes();

/// Both GEMMs of all experts of a layer, from 1 to 8192 tokens.
std::vector<GroupedShape> priority_grouped_shapes();

/// Products by head of latent attention in decode: queries into the latent space and results out of
/// it, up to 512 tokens.
std::vector<BatchedShape> priority_batched_shapes();

/// Causal attention of at most `most_flops`; models with latent attention have none.
std::vector<PrefillShape> priority_prefill_shapes(double most_flops);
/// Decode over paged caches of at most `most_bytes`; models with latent attention have none.
std::vector<DecodeShape> priority_decode_shapes(double most_bytes);

/// Attention of the first model, run without a pause for so many seconds while clock and power are
/// read.
inline constexpr double kSustainSeconds = 6;
PrefillShape sustained_prefill();
DecodeShape sustained_decode();

}  // namespace orrery::measure
