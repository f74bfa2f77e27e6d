// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workloads/layers/parts/rank_work.h"
#include "workloads/ops/step_list.h"

namespace orrery {

/// What the mixer of a layer does for one part of its sequences by kernels of its own, between the
/// projections of all tokens: nothing where the layer has none.
StepList attention_part_forward(const LlmConfig& model, const LayerConfig& layer,
                                const RankWork& work, const AttentionPart& part);

/// The mixer of a layer, from its normed input to its output before the residual: nothing where the
/// layer has none.
StepList mixer_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);

/// The two halves of a layer, either of which may be none: its mixer with its norms, and MLP or
/// experts with theirs.
StepList attention_half_forward(const LlmConfig& model, const LayerConfig& layer,
                                const RankWork& work);
StepList feed_half_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);

/// One transformer layer on one rank: attention, then MLP or experts.
StepList layer_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);
/// Its backward pass, with what `work.passes.recompute` computes again: layer_again() and
/// layer_gradients().
StepList layer_backward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);
/// What is computed again before the gradients of a layer that is recomputed whole, or all but some
/// operators.
StepList layer_again(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);
/// The gradients of a layer, with the parts of it that are computed again where they are needed.
StepList layer_gradients(const LlmConfig& model, const LayerConfig& layer, const RankWork& work);

/// Token and position embedding of a vocabulary-parallel table.
StepList embedding_forward(const LlmConfig& model, const RankWork& work);
StepList embedding_backward(const LlmConfig& model, const RankWork& work);

/// The norm behind the last layer of an encoder.
StepList encoder_end_forward(const LlmConfig& model, const RankWork& work);
StepList encoder_end_backward(const LlmConfig& model, const RankWork& work);

/// Final norm, output projection and, in training, the loss; in inference the choice of the next
/// token, for which prefill projects only the last token of every sequence. Without logits:
/// nothing.
StepList head_forward(const LlmConfig& model, const RankWork& work);
StepList head_backward(const LlmConfig& model, const RankWork& work);

/// A module of multi-token prediction, from hidden states and embeddings to the input of its final
/// norm and head, which are those of head_forward. Its layer is like the last of the model.
StepList module_forward(const LlmConfig& model, const RankWork& work);
StepList module_backward(const LlmConfig& model, const RankWork& work);

}  // namespace orrery
