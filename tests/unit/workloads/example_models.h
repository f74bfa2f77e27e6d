// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "workloads/models/huggingface/huggingface.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// A model of the library.
inline LlmConfig library_model(const std::string& name) {
  return load_huggingface(std::filesystem::path(ORRERY_SOURCE_DIR) / "configs/models/hf" /
                          (name + ".json"));
}

/// Megatron-LM's GPT: 4 h MLP with biases, LayerNorm, learned positions, tied embedding.
inline LlmConfig megatron_gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  LlmConfig model;
  model.name = "gpt";
  model.hidden = hidden;
  model.vocabulary = 51200;
  model.positions = 2048;
  model.tied_embeddings = true;
  model.norm_bias = true;
  model.attention.heads = heads;
  model.attention.kv_heads = heads;
  model.attention.head_dim = hidden / heads;
  model.attention.qkv_bias = true;
  model.attention.output_bias = true;
  model.mlp.intermediate = 4 * hidden;
  model.mlp.gated = false;
  model.mlp.bias = true;
  model.layers.resize(static_cast<std::size_t>(layers));
  return model;
}

/// Rotary, gated, grouped, untied: hidden 64, 8 heads of 8 with 4 KV heads, MLP of 192,
/// vocabulary 96.
inline LlmConfig small_llama(std::int64_t layers) {
  LlmConfig model;
  model.name = "small llama";
  model.hidden = 64;
  model.vocabulary = 96;
  model.attention.heads = 8;
  model.attention.kv_heads = 4;
  model.attention.head_dim = 8;
  model.mlp.intermediate = 192;
  model.layers.resize(static_cast<std::size_t>(layers));
  return model;
}

/// small_llama with 8 experts of 32, 2 per token, and a shared one of 32.
inline LlmConfig small_moe(std::int64_t layers) {
  LlmConfig model = small_llama(layers);
  model.name = "small moe";
  model.moe.experts = 8;
  model.moe.experts_per_token = 2;
  model.moe.intermediate = 32;
  model.moe.shared_experts = 1;
  model.moe.shared_intermediate = 32;
  for (LayerConfig& layer : model.layers) layer.moe = true;
  return model;
}

}  // namespace orrery
