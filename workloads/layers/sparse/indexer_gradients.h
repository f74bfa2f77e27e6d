// SPDX-License-Identifier: Apache-2.0
// Kernels that train sparse attention, as TileLang's examples launch them, which Megatron-Core has
// taken over (tile-ai/tilelang, examples/dsa_sparse_finetune: indexer_topk_reducesum.py,
// sparse_mla_bwd.py, sparse_mla_topk_reducesum.py, indexer_bwd.py; Megatron-LM,
// experimental_attention_variant: dsa). All in 16 bits. Attention has FlashAttention's five
// products over what was chosen; the indexer learns the distribution of attention over it: sums of
// probabilities over heads, to which the softmax of its scores is drawn by their Kullback-Leibler
// divergence (DeepSeek-V3.2's report, arXiv 2512.02556, section 2.1.1, equation 4).
#pragma once

#include <vector>

#include "workloads/layers/sparse/indexer_kernels.h"

namespace orrery {

/// Scores and selection in one kernel: scores stay in shared memory, where bitonic sorts leave the
/// best; what is written are their places and the softmax of their scores.
/// @param heads, groups as of index_scores()
Kernel index_choice(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t heads,
                    std::int64_t groups, Precision precision);

/// Attention as chosen_attention() with the fp32 log-sum-exp of each row written besides.
Kernel chosen_training_attention(const SeenKeys& seen, const ChosenHeads& heads,
                                 Precision precision);
/// Products of outputs and their gradients by rows, gradients of queries and, added up by atomics
/// in fp32, of keys (and values), and these in 16 bits.
std::vector<Kernel> chosen_gradients(const SeenKeys& seen, const ChosenHeads& heads,
                                     Precision precision);

/// What an indexer learns: probabilities of attention to what was chosen, summed over the heads of
/// a rank.
Kernel index_target(const SeenKeys& seen, const ChosenHeads& heads, Precision precision);
/// Gradients of index queries, keys and weights: scores of what was chosen again, and a product for
/// each of the first two.
Kernel index_gradient(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t heads,
                      std::int64_t groups, Precision precision);

/// Bytes of a distribution over all that was chosen, and of its places, which blocks share, with
/// softmax scores; those of blocks are computed again.
double choice_bytes(const SeenKeys& seen, const IndexerConfig& indexer, std::int64_t groups);
double distribution_bytes(const SeenKeys& seen, std::int64_t groups);

}  // namespace orrery
