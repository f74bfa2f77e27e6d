// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workloads/models/llm_config.h"

namespace orrery {

/// Whether a model is an encoder and nothing else (BERT): it reads whole sequences, chooses no
/// tokens, and keeps nothing of a sequence behind a step.
inline bool is_encoder_alone(const LlmConfig& model) {
  return model.has_encoder() && model.encoder_layers() == model.layer_count();
}

/// Parameters of what pools the first token of each sequence: a square matrix with a bias.
inline std::int64_t pooler_parameters(const LlmConfig& model) {
  return model.pooler ? model.hidden * (model.hidden + 1) : 0;
}

/// Multiply-adds behind the layers for each token that is chosen, or for each sequence that an
/// encoder pools.
inline std::int64_t head_adds(const LlmConfig& model) {
  if (!is_encoder_alone(model)) return model.vocabulary * model.hidden;
  return model.pooler ? model.hidden * model.hidden : 0;
}

}  // namespace orrery
