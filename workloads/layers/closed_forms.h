// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "sim/units/units.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// The five sizes that textbook estimates of a GPT-like transformer are written in.
struct TextbookDimensions {
  std::int64_t hidden = 0;      ///< hidden size, d
  std::int64_t layers = 0;      ///< number of layers, N
  std::int64_t sequence = 0;    ///< tokens of a sequence, L
  std::int64_t batch = 0;       ///< sequences of a batch, B
  std::int64_t heads = 0;       ///< attention heads, h
  std::int64_t vocabulary = 0;  ///< tokens of the vocabulary, V
};

/// 12 N d^2 + V d: attention (4 d^2), an MLP of four times the width (8 d^2) and one embedding
/// table that is also the head. Norms, biases and positions are left out.
std::int64_t textbook_parameters(const TextbookDimensions& d);

/// Weights of 2 bytes.
Bytes textbook_weights_fp16(const TextbookDimensions& d);

/// Mixed-precision Adam: 16 bytes a parameter, of which 2 weight, 2 gradient and 12 fp32 copies of
/// weight, momentum and variance (Rajbhandari et al., ZeRO, SC 2020, section 3.1).
Bytes textbook_training_state(const TextbookDimensions& d);

/// Activations of all layers kept for the backward pass: (9 B L d + 2 B h L^2) values of 2 bytes in
/// each layer, the second term being the attention scores and their softmax.
Bytes textbook_activations(const TextbookDimensions& d);

/// Forward FLOPs of one token: 2 for each element of the matrices it meets (head included,
/// embedding lookup not) and 2 for each element of the scores and of the weighted values. A
/// backward pass takes twice as much. `causal` counts the keys a token can see, on average half of
/// `sequence` (the convention of Megatron-Bridge's "model TFLOP"), otherwise all; windows bound
/// both.
Flops model_flops_per_token(const LlmConfig& model, std::int64_t sequence, bool causal);

/// Forward FLOPs that a model needs to answer a request, by the same convention: those of every
/// token that is computed once, the head for tokens of the answer alone.
class AnswerFlops {
 public:
  explicit AnswerFlops(const LlmConfig& model);

  /// @param kept tokens of the prompt that were in a cache before
  /// @param output tokens of the answer, of which the last is not computed on
  Flops of(std::int64_t prompt, std::int64_t kept, std::int64_t output) const;

 private:
  /// Multiply-adds for the keys that the first so many tokens meet, in all layers.
  double of_keys(std::int64_t tokens) const;

  /// What a layer sees at most: a window (0: all) of its chunk (0: there are none).
  using View = std::pair<std::int64_t, std::int64_t>;

  double matrices_, head_;        ///< multiply-adds of a token
  std::map<View, double> views_;  ///< multiply-adds for each key that it sees, in all layers alike
};

/// FLOPs of a forward pass of an encoder and decoder over one sequence of `encoder` tokens that are
/// read and `decoder` tokens that are predicted: keys and values of cross attention are those of
/// what is read.
Flops encoder_decoder_flops(const LlmConfig& model, std::int64_t encoder, std::int64_t decoder);

}  // namespace orrery
