// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/config/declared.h"
#include "sim/config/file_path.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// A GPT- or Llama-like dense model by its sizes alone. The defaults are those of GPT-2 and
/// Megatron (LayerNorm, biases, plain MLP) except that positions are rotary unless given.
struct DimensionsConfig {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;      ///< 0: as many as heads
  std::int64_t head_dim = 0;      ///< 0: hidden / heads
  std::int64_t intermediate = 0;  ///< 0: four times the width
  std::int64_t vocabulary = 0;
  std::int64_t learned_positions = 0;  ///< 0: rotary
  std::int64_t encoder_layers = 0;  ///< layers of an encoder, the first of all; 0: a decoder alone
  bool gated = false;
  bool biases = true;      ///< biases in attention and MLP
  bool layer_norm = true;  ///< norms with a bias; false: RMS norm
  bool tied_embeddings = true;
  bool parallel_block = false;  ///< attention and MLP beside each other, from one norm
  std::int64_t window = 0;      ///< tokens that attention sees, itself included; 0: all
  static const config::Schema<DimensionsConfig>& schema();
};

/// A file of `configs/models`: a model by its Hugging Face configuration or by its dimensions.
struct ModelConfig {
  std::string name;
  std::string source;  ///< document that published its sizes
  FilePath hf;
  bool language_only = false;  ///< leaves out the vision tower of the file
  std::optional<DimensionsConfig> dimensions;
  static const config::Schema<ModelConfig>& schema();

  /// @throws UnsupportedModel, config::ConfigError of the Hugging Face file.
  LlmConfig build() const;
};

}  // namespace orrery
