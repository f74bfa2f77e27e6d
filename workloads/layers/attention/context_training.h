// SPDX-License-Identifier: Apache-2.0
// Context parallelism of training, as Transformer Engine has it (9c61cd7
// pytorch/attention/dot_product_attention/context_parallel.py): cp ranks have the tokens of each
// sequence together, in 2 cp equal pieces of which rank r has pieces r and 2 cp - 1 - r, which is
// as much causal attention for each (context_parallel.h). All of a layer but attention works on a
// rank's own tokens.
//
// p2p: keys and values go round a ring while attention works on those that came last. Each rank
// first sees its own tokens under the mask; then, of keys that lie before, all its queries see the
// first half, and of keys that lie behind its first piece the second half of its queries sees all.
// Outputs are put together by the logarithms of their exponential sums. Backward, gradients of keys
// and values go round behind them.
// all_gather: keys and values come together before attention, their gradients are reduced and
// scattered.
// a2a: each rank gets all tokens of its share of the heads, and gives their results back.
// a2a+p2p: heads in groups of cp_a2a ranks, a ring over these.
#pragma once

#include "workloads/layers/parts/layer_parts.h"
#include "workloads/software/training_switches.h"

namespace orrery {

/// How cp ranks share sequences.
ContextSplit context_split(const ParallelConfig& parallel, ContextExchange exchange);

/// Attention of a rank's tokens, with what ranks exchange for it.
void split_attention_forward(StepList& steps, const LayerTask& task, const AttentionPart& part);
void split_attention_backward(StepList& steps, const LayerTask& task, const AttentionPart& part);

/// @throws config::KeyError for models and plans whose sequences cannot be shared so
void require_split_sequences(const LlmConfig& model, const ParallelConfig& parallel,
                             ContextExchange exchange, std::int64_t sequence);

}  // namespace orrery
