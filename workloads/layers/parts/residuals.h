// SPDX-License-Identifier: Apache-2.0
// What connects the halves of layers: one residual stream, several that hyper-connections mix, or
// mixtures of what blocks of layers gave.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/layers/parts/layer_op.h"

namespace orrery {

/// The input of a half where it is not the residual stream itself. Hyper-connections mix several
/// streams by weights that all of them give (and Sinkhorn steps balance). Attention residuals are a
/// mixture of what blocks of layers gave, weighed by a softmax of the products of their norms with
/// one learned query; the gradients of each are added to those of other mixtures of it.
/// @param needs tensors of which it is made
LayerOp residual_input(const LayerTask& task, std::vector<KeptTensor> needs);

/// Adds what a half gave to the residual stream; in inference the next norm does it. An addition
/// passes its gradient on as it is, dropout masks the half's. With hyper-connections it goes to all
/// streams, mixed anew; gradients are those of the half's output (which is kept), of the streams
/// and of their weights.
LayerOp residual_output(const std::string& name, const LayerTask& task, std::int64_t rows,
                        KeptTensor mask, KeptTensor output);

/// What is in front of the final norm: the streams weighed and added up, or a last mixture.
LayerOp residual_end(const LayerTask& task);

/// Whether a half's norm reads what was made of the residuals, so that no gradient comes past it.
bool mixes_residuals(const LayerTask& task);

/// [rows, hidden] that a pipeline stage sends of each token behind a layer: streams, or what all
/// mixtures from there on read.
double residual_copies(const LlmConfig& model, std::int64_t next_layer);

namespace kept {

/// What a half has for its residuals in front of it: all streams, or the sum of its block so far.
Tensor attention_residual_input(const LayerTask& task);
Tensor mlp_residual_input(const LayerTask& task);
/// What it gives to the streams, for the gradients of their weights.
Tensor attention_half_output(const LayerTask& task);
Tensor mlp_half_output(const LayerTask& task);
/// Outputs of blocks that the layer is the first to read, or on its rank.
Tensor block_outputs(const LayerTask& task);
/// Gradients of all that a half mixes.
Tensor residual_gradients(const LayerTask& task);

}  // namespace kept

}  // namespace orrery
