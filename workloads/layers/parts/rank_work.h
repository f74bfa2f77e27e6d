// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/graph/kernel.h"
#include "sim/serving/kernel_rules.h"
#include "workloads/layers/parts/lora.h"
#include "workloads/layers/work/token_batch.h"
#include "workloads/layers/work/training_passes.h"
#include "workloads/plan/expert_placement.h"
#include "workloads/plan/parallel_config.h"
#include "workloads/software/default_software.h"

namespace orrery {

/// Training: ranks that share the tokens of each sequence (context_training.h).
struct ContextSplit {
  int ranks = 1;         ///< all of them
  int heads = 1;         ///< ranks among them that exchange tokens for heads
  bool gathers = false;  ///< the others gather keys and values, or send them round a ring

  int rest() const { return ranks / heads; }
};

/// How layers are split over ranks, one of which is looked at.
struct RankSplit {
  int tp = 1;
  bool sp = false;
  int cp = 1, dcp = 1;  ///< inference: see context_parallel.h
  ContextSplit context;
  int ep = 1, etp = 1;
  /// Inference: each tensor parallel rank computes its experts, or its parts of experts, for all
  /// tokens of the group, and an all-reduce adds up the results. So it is where the group alone
  /// holds all experts once and sequence parallelism has not split the tokens. Else ranks share the
  /// tokens out and send them to the ranks of their experts.
  bool all_reduces_experts = false;
  /// Inference: the rank whose experts get the most tokens, for which the others wait. None: all
  /// ranks get the mean.
  std::optional<HeaviestRank> heaviest;
};

/// Formats of what a rank computes with and keeps.
struct WorkFormats {
  Precision precision = Precision::kBf16;     ///< precision of matrix operands
  Precision kv_precision = Precision::kBf16;  ///< precision of the KV cache
  /// Precision of what indexers score and keep: fp8 where tensor cores have it.
  Precision index_precision = Precision::kFp8;
  /// Inference: bits of the stored weights of a checkpoint in whose format the accelerator has no
  /// products, where products widen them (nvfp4 on Hopper, fp8 on Ampere); 0: there are none.
  std::int64_t widened_bits = 0;
  /// Inference: the tensor cores scale blocks of operands, so that mxfp4 weights meet inputs in
  /// mxfp8, as engines run them there (TensorRT-LLM's W4A8_MXFP4_MXFP8), and are not widened.
  bool mx_products = false;
  /// Precision in which products of training keep their inputs for the backward pass: that of
  /// activations, or fp8.
  bool narrow_inputs = false;
  /// Training: weights of dense products are 2:4 sparse.
  bool sparse_weights = false;
  /// Training: rate of fp8 products in backward passes over that of those that were measured.
  double fp8_gradient_rate = 1;
};

/// How a block of a layer stands among the others.
struct BlockPlace {
  /// A tensor parallel group has the input of column-parallel matrices whole, and adds up its
  /// gradient elsewhere; the output of the row-parallel one stays a sum in parts, and its gradient
  /// is whole (parallel blocks).
  bool whole_input = false;
  bool partial_output = false;
  /// Attention goes to the encoder's output: nothing is masked, and positions have no biases.
  bool to_encoder = false;
};

/// Work of one rank in a layer: its tokens, its share of the layer, its formats and its software.
struct RankWork {
  TokenBatch batch;
  RankSplit split;
  WorkFormats formats;
  TrainingPasses passes;
  BlockPlace place;
  /// Adapters: those of tokens in inference, those that are trained in training.
  LoraWork lora;
  /// Training: never null.
  std::shared_ptr<const TrainingSoftware> software = default_software();

  KernelRules kernels;  ///< Inference: kernels of the engine
  /// Inference: largest buffer whose all-reduce adds the residual and norms the sum; 0: none does.
  Bytes normed_all_reduce;
  bool flash_attention = true;
  /// Inference: one of two batches that take turns, whose exchanges run beside the other's kernels.
  bool takes_turns = false;
  /// Such batches of decodes take turns by stages of a layer (next_turn()), not by exchanges.
  bool turns_by_stages = false;

  /// Recomputation of backward passes under kSelective: parts of the layer, or by the software
  /// every second product.
  bool recomputes(RecomputeModule module) const {
    return passes.recompute == Recompute::kSelective && !recomputes_products() &&
           passes.modules[static_cast<std::size_t>(module)];
  }
  bool recomputes_products() const;
  /// Launches of a kernel that stands for so many operations.
  std::int64_t launches(std::int64_t operations) const;
  bool trains() const { return batch.phase == Phase::kTraining; }
  /// Tokens of the tensor parallel group.
  std::int64_t tokens() const { return batch.tokens(); }
  /// Tokens of this rank where the group splits them (the largest share).
  std::int64_t split_tokens() const { return (tokens() + split.tp - 1) / split.tp; }
  /// Tokens of norms, residuals and dropout: split under sequence parallelism.
  std::int64_t row_tokens() const { return split.sp ? split_tokens() : tokens(); }
  /// Rows of logits on one rank: in training all tokens, else one for each sequence that samples.
  std::int64_t logit_rows() const;
  /// Inference: kernels of their own quantise what products of that precision read.
  bool quantises_apart(Precision of_products) const;
  /// Format in which norms, and functions between matrices, write what products of `precision`
  /// read: wide where casts of their own follow.
  Precision normed_precision() const;
  Precision function_precision(Precision precision) const;
};

/// Training on one of tp ranks, for what its tokens do not matter to.
RankWork training_rank(int tp, int etp = 1);

/// The work of a rank on the tokens of the encoder.
RankWork encoder_work(RankWork work);

/// Query-key pairs that causal attention does not mask, per head and sequence: the sum over new
/// tokens of min(keys seen, window). `window` 0: no window. For query == context == s: s (s + 1)
/// / 2.
double causal_pairs(std::int64_t query, std::int64_t context, std::int64_t window);

/// KV heads on one rank: a head is copied when there are more ranks than heads.
std::int64_t local_kv_heads(const AttentionConfig& attention, int tp);

/// @throws config::KeyError when heads, KV heads, MLP width or experts cannot be split as asked.
void require_divisible(const LlmConfig& model, const ParallelConfig& parallel);

}  // namespace orrery
