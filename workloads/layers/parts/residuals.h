// SPDX-License-Identifier: Apache-2.0
// What connects the halves of layers: one residual stream, several that hyper-connections mix, or
// mixtures of what blocks of layers gave.
#pragma once

#include <cstdint>
#include <string>

#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/ops/step_list.h"

namespace orrery {

/// Adds the block's output to the residual stream. In inference the next norm does it.
void residual_forward(StepList& steps, const std::string& name, const LayerTask& task,
                      std::int64_t rows, KeptTensor mask);

/// An addition passes its gradient on as it is; dropout masks the block's.
void residual_backward(StepList& steps, const std::string& name, const LayerTask& task,
                       KeptTensor mask);

/// Hyper-connections: the input of a half is a mixture of the residual streams by weights that all
/// of them give (and Sinkhorn steps balance), and its output goes to all of them, mixed anew.
void hyper_connection_in(StepList& steps, const LayerTask& task);

void hyper_connection_out(StepList& steps, const LayerTask& task, std::int64_t rows);

/// Its gradients: of the half's output (which is kept), of the streams and of their weights; and of
/// the streams and weights that made the half's input.
void hyper_connection_out_backward(StepList& steps, const LayerTask& task);
void hyper_connection_in_backward(StepList& steps, const LayerTask& task);

/// Attention residuals: the input of a half is a mixture of what blocks of layers gave, weighed by
/// a softmax of the products of their norms with one learned query.
void residual_mixture(StepList& steps, const LayerTask& task);
/// Gradients of each output, added to those of other mixtures of it.
void residual_mixture_backward(StepList& steps, const LayerTask& task);

/// What is in front of the final norm: the streams weighed and added up, or a last mixture.
void residual_end(StepList& steps, const LlmConfig& model, const RankWork& work, std::int64_t rows);
void residual_end_backward(StepList& steps, const LlmConfig& model, const RankWork& work);

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
