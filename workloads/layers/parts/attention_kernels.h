// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/layers/work/token_batch.h"
#include "workloads/ops/fusion.h"

namespace orrery {

/// Scores, softmax and values of one layer on one rank, whoever asks for them: a model's layer, an
/// operator of an experiment, or a measured row.
struct AttentionCore {
  KernelClass kind = KernelClass::kAttentionPrefill;
  Precision precision = Precision::kBf16;  ///< precision of both products
  std::int64_t sequences = 1;
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t query = 1;    ///< new tokens of each sequence
  std::int64_t context = 0;  ///< keys that the last of them sees
  /// Keys that each sequence sees, where they differ; `context` is their mean then (mean_length()).
  std::vector<std::int64_t> contexts;
  /// Prompts of several kinds, of which `query` and `context` are PromptSum::alike(); empty: all
  /// are alike.
  std::vector<Prompts> prompts;
  std::int64_t window = 0;  ///< 0: all keys
  bool biased = false;      ///< learned biases of heads are added to scores
  /// A learned logit of each head stands beside its scores and has no value (gpt-oss).
  bool sinks = false;
  bool causal = true;                  ///< false: every query sees every key
  std::int64_t qk_dim = 0, v_dim = 0;  ///< columns of queries and keys, and of values, per head
  /// Absorbed latent attention: keys are one latent for all heads, values its first `v_dim`
  /// columns.
  bool latent = false;
  bool wide_queries = false;       ///< 16-bit queries over an 8-bit cache
  bool skips_masked = false;       ///< the softmax of stored scores reads up to the diagonal alone
  bool softmax_operators = false;  ///< scores are cast, masked and normalised apart, in fp32
  double new_bytes = 2, cache_bytes = 2;  ///< bytes of an element: new, earlier keys and values
};

/// Draft tokens that a decode verifies see the cache of their sequence together, as more heads
/// would that share its keys: kernels of decodes pack them so (FlashAttention's pack_gqa,
/// FlashMLA).
void queries_as_heads(AttentionCore& core);

/// Biases of the scores of all heads, which sequences share: what a kernel reads of them, and what
/// its backward pass writes.
Bytes bias_bytes(const AttentionCore& core);

/// What attention sinks add to a kernel: an exponential in each row and the logits of its heads;
/// backwards, for the sums that are gradients of the logits, fp32 statistics of each row again (the
/// softmax's, and the product of output and its gradient).
void add_sinks(Kernel& kernel, const AttentionCore& core);

/// The mean, rounded; at least 1.
std::int64_t mean_length(const std::vector<std::int64_t>& lengths);

/// Its sizes over all heads and sequences.
struct CoreSize {
  Bytes query, keys, values, output;
  double pairs = 0;  ///< query-key pairs that are not masked
};
/// Keys and values are those that some query sees, once for all heads that share them.
CoreSize core_size(const AttentionCore& core);

/// What a softmax of stored scores, or its gradient, moves more as operators in fp32, with `kept`
/// bytes of a score that it reads beside.
void add_softmax_operators(Kernel& softmax, double scores, double kept);
/// Share of the square of scores that a softmax reads.
double softmax_share(const AttentionCore& core);

/// FlashAttention (Dao 2023): one kernel that computes only what masks leave.
Kernel flash_attention(std::string name, const AttentionCore& core);
/// Its gradients: scores again, and those of values, probabilities, queries and keys, five products
/// in all.
Kernel flash_attention_gradient(std::string name, const AttentionCore& core);

/// A layer without FlashAttention: scores and probabilities in memory, the whole square of them, as
/// in Megatron-LM. fuse() makes flash_attention() of it.
KernelGraph stored_attention(const AttentionCore& core, bool dropout = false);

/// Keys and values of 8 bits make a prefill run in fp8, as TensorRT-LLM does; other kernels widen
/// them.
Precision attention_precision(KernelClass kind, Precision precision, bool narrow_cache);

}  // namespace orrery
