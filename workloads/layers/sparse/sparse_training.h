// SPDX-License-Identifier: Apache-2.0
// Training of DeepSeek sparse attention in its sparse stage (arXiv 2512.02556, section 2.1.1) as
// Megatron-Core has it (core/transformer/experimental_attention_variant: dsa.py, absorbed_mla.py at
// 00bebb4): queries absorbed into the latent space, the indexer whole on every tensor parallel
// rank, with inputs that are gathered and detached, so that its matrices have gradients of weights
// alone; its loss is that of the tokens it has chosen. Scores are in 16 bits. Layers that share a
// selection read that of the layer before, which keeps it, and train no indexer. Ranks that share
// sequences gather latents and index keys (dsa.py: cp_comm_type allgather). The dense warm-up
// of an indexer, 2.1 of 945.8 G tokens, is not a kind of step.
#pragma once

#include <vector>

#include "workloads/layers/parts/layer_parts.h"

namespace orrery {

/// Matrices of the indexer: of queries, of keys and of weights.
std::vector<Linear> index_linears(const LayerTask& task);

/// Queries, keys and weights of the indexer, behind what gathers its inputs.
void indexer_training_forward(StepList& steps, const LayerTask& task);
/// From queries and latents to what heads give.
/// @param chooses has an indexer
void sparse_training_forward(StepList& steps, const LayerTask& task, bool chooses);
/// Back to the gradient of the latents, with those of the indexer up to its matrices that read the
/// layer's input.
void sparse_training_backward(StepList& steps, const LayerTask& task, bool chooses);
/// Gradients of those, where the layer's input is there.
void indexer_training_backward(StepList& steps, const LayerTask& task);

}  // namespace orrery
