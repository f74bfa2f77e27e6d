// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "sim/graph/tensors.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/ops/step_list.h"

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

/// Tensors of attention to the encoder's output. That output is kept by the first layer of a chunk
/// that sees it.
Tensor cross_norm_input(const LayerTask& task);
Tensor cross_input(const LayerTask& task);
Tensor encoder_output(const LayerTask& task);
Tensor encoder_norm_input(const LayerTask& task);

/// None in parallel blocks of one norm, which share attention_input.
Tensor mlp_input(const LayerTask& task);
Tensor mlp_function_input(const LayerTask& task);
Tensor down_input(const LayerTask& task);
/// The last product of a dense layer, which operators keep where they keep every second one.
Tensor down_output(const LayerTask& task);

/// Tensors of the router, which is not quantised.
Tensor router_input(const LayerTask& task);
Tensor router_scores(const LayerTask& task);
/// Results of routed experts, and of the MLP beside them, in front of norms of their own.
Tensor expert_norm_inputs(const LayerTask& task);
/// What shared experts read where it is not router_input: a narrow copy, or behind another norm.
Tensor shared_input(const LayerTask& task);
Tensor shared_function_input(const LayerTask& task);
Tensor shared_down_input(const LayerTask& task);
/// Rows of experts. Where etp ranks share each expert, each has the rows of all and its part of the
/// columns.
Tensor expert_input(const LayerTask& task);
Tensor expert_function_input(const LayerTask& task);
Tensor expert_down_input(const LayerTask& task);
/// For the gradients of the gates, which with expert parallelism see reduced outputs; none where
/// functions multiply by the weights of gates.
Tensor expert_outputs(const LayerTask& task);
/// Where experts have a width of their own: what brings their sums back to that of the model reads.
Tensor expert_sums(const LayerTask& task);

/// Tensors of the head: scores of the vocabulary on this rank, and fp32 probabilities beside them.
Tensor logits(const LayerTask& task);
Tensor loss_probabilities(const LayerTask& task);
/// A loss by operators widens logits to fp32, and makes a gradient of its probabilities and one of
/// the wide logits while the probabilities are alive (PyTorch: nll_loss_backward,
/// _log_softmax_backward_data).
Tensor wide_logits(const LayerTask& task);
/// Where ranks share the vocabulary: logits without their maximum, in the forward pass, and
/// exponentials, in the backward pass (PyTorch torch/distributed/tensor/parallel/loss.py).
Tensor logit_differences(const LayerTask& task);
Tensor logit_exponentials(const LayerTask& task);
/// Where the software shifts logits: the copy without the last token, and the gradient of the copy
/// in 16 bits.
Tensor shifted_logits(const LayerTask& task);
Tensor shifted_gradients(const LayerTask& task);
/// What a compiled loss writes, beside the logits that it reads.
Tensor compiled_gradients(const LayerTask& task);
Tensor probability_gradients(const LayerTask& task);
Tensor wide_gradients(const LayerTask& task);
/// What the head reads, where it is kept apart from the layers' tensors.
Tensor head_input(const LayerTask& task);

}  // namespace kept
}  // namespace orrery
