// SPDX-License-Identifier: Apache-2.0
// Context parallelism of inference, as vLLM has it (docs/serving/context_parallel_deployment.md;
// RFC 25749).
//
// cp (prefill_context_parallel_size): ranks of an axis of their own share the new tokens of prompts
// and have all of a decode's. Each rank gathers keys and values of all tokens of a sequence, layer
// by layer, and attends to them with the queries of its own tokens.
//
// dcp (decode_context_parallel_size): ranks of a tensor parallel group that would have copies of
// the same KV heads, or of a latent.
//
// The cache of a sequence lies token by token on all cp x dcp ranks in turn. Decodes attend to a
// rank's part of it with the queries of all heads of the group, and outputs are put together by the
// logarithms of their exponential sums.
#pragma once

#include <cstdint>

#include "workloads/layers/parts/layer_parts.h"

namespace orrery {

/// Tokens of each of the 2 cp equal pieces that a prompt, or a piece of one, is padded to. A rank
/// has one from the front and its mirror from the back, which is as much causal attention for each
/// (Llama 3, arXiv 2407.21783, section 3.3.2).
std::int64_t context_piece(std::int64_t tokens, int cp);
/// Tokens of it that each rank has; all of them where cp is 1.
std::int64_t context_share(std::int64_t tokens, int cp);
/// New tokens of such parts on one rank: shares of prompts, and all of decodes.
std::int64_t rank_tokens(const std::vector<AttentionPart>& parts, int cp);
/// Keys of the first of so many ranks, on which a sequence's keys lie in turn.
std::int64_t cached_keys(std::int64_t keys, int ranks);

/// A decode as a rank sees it, with its keys of each sequence.
AttentionPart cached_part(const AttentionPart& part, const RankWork& work);
/// The tokens of a prompt that a rank has, as two sequences for each: both of a rank's pieces
/// together see as many keys as two whose last tokens see the mean.
AttentionPart own_part(const AttentionPart& part, const RankWork& work);
/// Keys of all sequences of a prompt's part, earlier ones and padding included.
std::int64_t gathered_keys(const AttentionPart& part, const RankWork& work);

/// Keys and values, or latents, of a prompt's tokens and of earlier ones in the cache come from the
/// other cp ranks.
/// @param columns those of a token, keys and values together
/// @param earlier tokens of each sequence that the cp ranks have in their caches together
void gather_keys(StepList& steps, const LayerTask& task, const AttentionPart& part,
                 std::int64_t columns, std::int64_t earlier);
/// Queries of all heads that share a cache come together on each of the dcp ranks.
/// @param columns those of a head
void gather_queries(StepList& steps, const LayerTask& task, std::int64_t tokens,
                    std::int64_t columns);
/// Puts outputs over parts of the cache together: of dcp ranks, each of which keeps its heads, then
/// of cp ranks (vLLM, attention/ops/common.py: cp_lse_ag_out_rs, cp_lse_ag_out_ar).
/// @param columns those of a head
void combine_heads(StepList& steps, const LayerTask& task, std::int64_t tokens,
                   std::int64_t columns);
void combine_contexts(StepList& steps, const LayerTask& task, std::int64_t tokens,
                      std::int64_t columns);

/// Grouped attention of one part on a rank, with what ranks exchange for it.
void context_core_forward(StepList& steps, const LayerTask& task, const AttentionPart& part);

/// Hidden states of all ranks' tokens come together before the head, where there are prompts among
/// them.
StepList hidden_gather(const LlmConfig& model, const RankWork& work);

/// @throws config::KeyError for models and plans whose caches cannot be shared so
void require_context_parallel(const LlmConfig& model, const ParallelConfig& parallel);

}  // namespace orrery
