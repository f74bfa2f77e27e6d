// SPDX-License-Identifier: Apache-2.0
// Kernels of sparse attention as engines run them: scores of an indexer (DeepGEMM,
// fp8_mqa_logits and fp8_paged_mqa_logits), the largest of them (SGLang's fast_topk, vLLM's
// top_k_per_row) and attention of each token to what it has chosen (FlashMLA's sparse kernels).
#pragma once

#include <cstdint>

#include "workloads/layers/parts/rank_work.h"

namespace orrery {

/// How many tokens, or compressed entries of them, the new tokens of a part see.
struct SeenKeys {
  std::int64_t sequences = 1;
  std::int64_t tokens = 1;  ///< new tokens of all sequences
  double pairs = 0;         ///< pairs of a new token and an entry that it sees
  double chosen = 0;        ///< pairs of a new token and an entry that it attends to
  double entries = 0;       ///< entries of all sequences
  bool paged = false;       ///< each token is scored by a block of its own, over pages of a cache

  /// Entries that a token sees, or attends to, on average; at least 1.
  std::int64_t seen_by_each() const;
  std::int64_t chosen_by_each() const;
};
/// @param ratio tokens of an entry
/// @param most entries that each token attends to at most; 0: all
SeenKeys seen_keys(const AttentionPart& part, std::int64_t ratio, std::int64_t most);

/// Tokens of a prompt that a block of DeepGEMM's scores works on; fewer are scored as new tokens
/// are, over pages of the cache, with a block for each (fp8_mqa_logits, fp8_paged_mqa_logits).
inline constexpr std::int64_t kScoredTogether = 4;

/// Products of all heads of an indexer with the one key of each entry, ReLU and their weighted sum:
/// fp32 scores, the largest of each block where tokens are chosen by blocks.
/// @param heads those of a rank
/// @param key_bytes bytes of an element of the keys
/// @param groups heads whose scores stay apart, each group choosing for itself
Kernel index_scores(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t heads,
                    std::int64_t groups, Precision precision, double key_bytes);
/// The largest of them: one thread block a token and group reads its scores twice.
Kernel index_selection(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t groups);

/// Heads that share the keys of what each token has chosen.
struct ChosenHeads {
  std::int64_t groups = 1;  ///< groups of heads, each with keys and choices of its own
  std::int64_t heads = 1;   ///< heads of a group
  std::int64_t qk_dim = 0, v_dim = 0;
  bool latent = false;  ///< values are columns of the keys
  /// Blocks work on all queries that chose a block of keys, and so fill their rows.
  bool gathers = false;
  double cache_bytes = 2;  ///< bytes of an element of the cache
  /// Entries that the kernel computes for each token, also where a short context has fewer. 0
  /// stands for those that the token attends to.
  std::int64_t places = 0;
};
Kernel chosen_attention(const SeenKeys& seen, const ChosenHeads& heads, Precision precision);

}  // namespace orrery
