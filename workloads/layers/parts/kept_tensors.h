// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "workloads/layers/parts/layer_parts.h"

namespace orrery {

/// A tensor that the forward pass of a layer leaves for its backward pass. What is computed again
/// is working memory: under selective recomputation that of its parts, under full recomputation all
/// but the layer's input. 0 bytes: the layer has none.
using KeptTensor = Tensor (*)(const LayerTask& task);

/// The last of `steps` makes, uses or frees them, if steps tell. Working memory is made by forward
/// passes that compute again, what is kept by first ones.
void makes(StepList& steps, const LayerTask& task, std::initializer_list<KeptTensor> tensors);
void uses(StepList& steps, const LayerTask& task, std::initializer_list<KeptTensor> tensors);
void frees(StepList& steps, const LayerTask& task, std::initializer_list<KeptTensor> tensors);

/// Most bytes of gradients of activations that are alive together in the backward pass of a layer:
/// of the residual, of what tensor parallel ranks gathered (twice under DTensor: PyTorch
/// torch/distributed/_functional_collectives.py, all_gather_tensor: cat of chunks), and of the
/// widest part, in front of its function and behind it.
Bytes gradient_flow(const LayerTask& task);

/// Most bytes that widening a frozen matrix of a layer has at a time, its result included; 0 if
/// frozen matrices are stored as they are trained.
Bytes widening_bytes(const LayerTask& task);

/// Inputs of norms, activations of [rows, hidden]; that of the first is the layer's.
namespace kept {

/// A tensor of `bytes` that full recomputation makes again.
Tensor of_layer(const char* name, const LayerTask& task, double bytes);
/// A tensor of [tokens, columns] that full recomputation makes again.
Tensor of_tokens(const char* name, const LayerTask& task, double columns, double bytes);
Tensor of_tokens(const char* name, const LayerTask& task, std::int64_t columns, double bytes);
/// Bytes an element of what matrix products read and keep for their weight gradients. Adapters of
/// a frozen model keep it in 16 bits, each a copy of its own where it drops some. Frozen matrices
/// keep it only if they are stored narrow and the software does so (keeps_frozen_inputs).
/// @param readers matrices that read the tensor and may have adapters
double input_bytes(const RankWork& work, std::initializer_list<LoraModule> readers = {});

/// A tensor that is made again with one of these parts as well.
Tensor of_modules(Tensor tensor, const LayerTask& task,
                  std::initializer_list<RecomputeModule> modules);
Tensor of_modules(const char* name, const LayerTask& task, double bytes,
                  std::initializer_list<RecomputeModule> modules);
/// Whether each operator of PyTorch saves what its gradient needs.
bool saves_by_operator(const LayerTask& task);
/// Columns that are kept of the function of an MLP: its input and, where that is gated, the gate's,
/// and what the function gives where the product with it is an operator of its own.
double function_columns(const LayerTask& task);
/// Rows of the experts of a rank.
double routed_rows(const LayerTask& task);

Tensor layer_input(const LayerTask& task);
Tensor mlp_norm_input(const LayerTask& task);
/// What norms of PyTorch operators keep beside their inputs.
Tensor attention_norm_values(const LayerTask& task);
Tensor mlp_norm_values(const LayerTask& task);
Tensor attention_output_norm_input(const LayerTask& task);
Tensor mlp_output_norm_input(const LayerTask& task);
/// A byte an element of hidden dropout.
Tensor attention_residual_mask(const LayerTask& task);
Tensor mlp_residual_mask(const LayerTask& task);

/// What the first matrix of attention, or of another mixer, reads.
Tensor attention_input(const LayerTask& task);
/// Latent attention: in front of their norm, with the rotary key; and behind it, which
/// up-projections read. Where queries have no latent they read attention_input.
Tensor latent_norm_input(const LayerTask& task);
Tensor latents(const LayerTask& task);
/// In front of the norm of heads.
Tensor unnormed_heads(const LayerTask& task);
Tensor queries_keys_values(const LayerTask& task);
/// fp32 log-sum-exp of each row of FlashAttention.
Tensor attention_sums(const LayerTask& task);
/// What FlashAttention needs of its result.
Tensor attention_result(const LayerTask& task);
/// What the matrix behind the core reads, unless that is attention_result itself.
Tensor output_projection_input(const LayerTask& task);
/// Columns whose sigmoid multiplies what heads give, or one for each head.
Tensor attention_gate(const LayerTask& task);
/// Stored attention: [heads, query, context] of probabilities, of the dropout mask (a byte each)
/// and of what dropout leaves.
Tensor probabilities(const LayerTask& task);
Tensor attention_mask(const LayerTask& task);
Tensor dropped_probabilities(const LayerTask& task);

/// Frozen matrices as products read them, which gptq keeps.
Tensor widened_weights(const LayerTask& task);

/// Between the two matrices of all adapters of a layer that is otherwise frozen.
Tensor adapter_columns(const LayerTask& task);

/// None in parallel blocks of one norm, which share attention_input.
Tensor mlp_input(const LayerTask& task);
Tensor mlp_function_input(const LayerTask& task);
Tensor down_input(const LayerTask& task);
/// The last product of a dense layer, which operators keep where they keep every second one.
Tensor down_output(const LayerTask& task);

}  // namespace kept
}  // namespace orrery
