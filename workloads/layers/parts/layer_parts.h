// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/layers/parts/part_weights.h"
#include "workloads/layers/parts/rank_work.h"
#include "workloads/ops/step_list.h"

namespace orrery {

enum class GraphPart : std::uint8_t;

/// Whether a forward pass is the first of its layer, or recomputes what a backward pass needs.
enum class Forward : std::uint8_t { kFirst, kAgain };

/// A layer of a model and what one rank does in it.
struct LayerTask {
  const LlmConfig& model;
  const LayerConfig& layer;
  const RankWork& work;
  Forward forward = Forward::kFirst;

  /// What the layer has where those of a model differ from each other.
  const AttentionConfig& attention() const { return model.attention_of(layer); }
  MlpConfig mlp() const { return model.mlp_of(layer); }

  /// Bytes of an element of activations.
  double bytes() const { return activation_bytes(work.formats.precision); }

  /// The same, computed again.
  LayerTask again() const { return {model, layer, work, Forward::kAgain}; }

  /// A mixture of experts works on 1/tp of the tokens whatever `sp` says, so what comes before it
  /// is scattered, unless every rank routes all tokens.
  bool scatters_attention() const {
    return work.split.sp || (layer.moe && work.split.tp > 1 && !work.split.all_reduces_experts);
  }

  /// Precision of the products of matrices stored so. Training does not start from a checkpoint's
  /// formats.
  Precision precision(StoredFormat stored) const;
  WeightFormat weights(StoredFormat stored) const;
};

/// Sizes of the attention core on one rank.
struct CoreShape {
  std::int64_t query_heads = 0, kv_heads = 0;
  std::int64_t qk_dim = 0, v_dim = 0;
};
CoreShape core_shape(const LayerTask& task);

/// Scores, softmax and values of one part on this rank.
AttentionCore attention_core(const LayerTask& task, const AttentionPart& whole);

/// FlashAttention of a step, and its gradients, at the rates of its software.
Kernel attention_forward(const std::string& name, const AttentionCore& core, const RankWork& work);
Kernel attention_gradient(const std::string& name, const AttentionCore& core, const RankWork& work);

/// Scores, softmax and values of one part. FlashAttention (Dao 2023) computes only what causal
/// masks leave; without it Megatron-LM computes and stores the whole square. 16-bit even where
/// weights are quantised.
void attention_core_forward(StepList& steps, const LayerTask& task, const AttentionPart& part);
void attention_core_backward(StepList& steps, const LayerTask& task);

/// An MLP without experts: the matrix in front of its function, and the one behind it.
PartWeights mlp_weights(const LayerTask& task);
/// A mixture of experts on a rank: what every rank holds whole, and each of its routed experts.
struct ExpertWeights {
  PartWeights whole, expert;
};
ExpertWeights moe_weights(const LayerTask& task);
/// Matrices of a layer that adapters may change: of its mixer and of an MLP without experts.
std::vector<Linear> adapted_linears(const LayerTask& task);

/// Columns of queries, keys and values that norms of heads work on, and of queries and keys that
/// rotary positions do.
std::int64_t normed_heads_width(const LayerTask& task);
std::int64_t rotated_width(const LayerTask& task);
/// RMSNorm or LayerNorm of [rows, hidden]. In inference it also adds the residual (one fused
/// kernel).
Kernel norm_forward(const std::string& name, const LayerTask& task, std::int64_t rows);
/// Whether a gradient came past the block behind a norm, through the residual.
enum class PastBlock : std::uint8_t { kNothing, kGradient };
/// The gradients of a norm's input and weights, and the sum with what came past its block.
void norm_backward(StepList& steps, const std::string& name, const LayerTask& task,
                   std::int64_t rows, PastBlock past);

/// The elementwise function of an MLP on [rows, width], width being the input of the last matrix.
Kernel activation_forward(const std::string& name, const LayerTask& task, std::int64_t rows,
                          std::int64_t width);
Kernel activation_backward(const std::string& name, const LayerTask& task, std::int64_t rows,
                           std::int64_t width);
/// The function of a gated MLP with what the product with its gate reads and writes, where the
/// software of a training run has a kernel for each.
Kernel gate_apart(const LayerTask& task, Kernel function);
/// The kernel as compilers of the software of a training run make it.
Kernel compiled(Kernel kernel, const RankWork& work);

/// What follows is a further stage of a layer, in front of which the other of two batches of
/// decodes has its turn. The stages are those of SGLang (python/sglang/srt/operations_strategy.py,
/// 2025): projections; attention and router; dispatch and shared experts; what has come, experts,
/// combine; sums. Products with the up-projections of latent attention count to the second here.
void next_turn(StepList& steps, const LayerTask& task);

/// What the host takes for the kernels of a part of a training step, from now on.
void issued(StepList& steps, const LayerTask& task, GraphPart part);

/// 16-bit (or 32-bit) format for what is not quantised: attention, router, head.
Precision unquantised(Precision precision);

}  // namespace orrery
