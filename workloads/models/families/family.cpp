// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

#include <fmt/core.h>

namespace orrery {
void read_sizes(FieldReader& reader, LlmConfig& model) {
  model.hidden = reader.size({"hidden_size", "n_embd"}, llm_limits::kHidden);
  model.vocabulary = reader.size({"vocab_size"}, llm_limits::kVocabulary);
  const std::int64_t layers = reader.size({"num_hidden_layers", "n_layer"}, llm_limits::kLayers);
  model.layers.assign(static_cast<std::size_t>(layers), LayerConfig{});
}

void read_grouped_attention(FieldReader& reader, LlmConfig& model) {
  AttentionConfig& a = model.attention;
  a.heads = reader.size({"num_attention_heads", "n_head"}, llm_limits::kHeads);
  a.kv_heads = reader.size_or({"num_key_value_heads", "n_head_kv"}, llm_limits::kHeads, a.heads);
  reader.require_divides("num_key_value_heads", a.kv_heads, a.heads, "attention heads");
  if (!reader.has("head_dim"))
    reader.require_divides_width("num_attention_heads", a.heads, model.hidden);
  a.head_dim = reader.size_or({"head_dim"}, llm_limits::kHeadDim, model.hidden / a.heads);
  if (a.head_dim > llm_limits::kHeadDim)
    reader.invalid("num_attention_heads",
                   fmt::format("heads are wider than {}", llm_limits::kHeadDim));
}

void make_classical(LlmConfig& model) {
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.mlp.gated = false;
  model.mlp.bias = true;
  model.norm_bias = true;
}

std::int64_t read_window(FieldReader& reader) {
  return reader.count_or({"sliding_window", "sliding_window_size"}, llm_limits::kTokens, 0);
}

void read_uniform_window(FieldReader& reader, LlmConfig& model) {
  const std::int64_t window = read_window(reader);
  for (LayerConfig& layer : model.layers) layer.window = window;
}

bool read_layer_types(FieldReader& reader, LlmConfig& model, std::int64_t window) {
  const std::vector<std::string> types = reader.texts_or_empty("layer_types");
  if (types.empty()) return false;
  reader.require_entries("layer_types", types.size(), model.layers.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "sliding_attention") {
      if (window == 0) reader.invalid("sliding_window", "missing, but layer_types needs it");
      model.layers[i].window = window;
    } else if (types[i] != "full_attention") {
      reader.unsupported("layers of type '" + types[i] + "' are not modelled");
    }
  }
  return true;
}

void read_alternating_windows(FieldReader& reader, LlmConfig& model) {
  const std::int64_t window = read_window(reader);
  if (read_layer_types(reader, model, window)) return;
  for (std::size_t i = 0; i < model.layers.size(); i += 2) model.layers[i].window = window;
}

void read_window_pattern(FieldReader& reader, LlmConfig& model, std::int64_t every) {
  const std::int64_t window = read_window(reader);
  every = reader.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, llm_limits::kLayers,
                         every);
  if (read_layer_types(reader, model, window)) return;
  for (std::int64_t i = 0; i < model.layer_count(); ++i)
    if ((i + 1) % every != 0) model.layers[static_cast<std::size_t>(i)].window = window;
}

void read_deepseek_experts(FieldReader& reader, MoeConfig& moe) {
  moe.experts = reader.size({"n_routed_experts"}, llm_limits::kExperts);
  moe.experts_per_token = read_top_k(reader, moe.experts);
  moe.groups = reader.count_or({"n_group"}, llm_limits::kExperts, 0);
  moe.top_groups = reader.count_or({"topk_group"}, llm_limits::kExperts, 0);
  moe.intermediate = reader.size({"moe_intermediate_size"}, llm_limits::kIntermediate);
  moe.shared_experts = reader.count_or({"n_shared_experts"}, llm_limits::kSharedExperts, 0);
  moe.shared_intermediate = moe.shared_experts * moe.intermediate;
  moe.router_bias = reader.text_or({"topk_method"}, "") == "noaux_tc";
}

void read_layers_behind_dense(FieldReader& reader, LlmConfig& model) {
  const std::int64_t dense = reader.count_or({"first_k_dense_replace"}, llm_limits::kLayers, 0);
  const std::int64_t frequency = reader.size_or({"moe_layer_freq"}, llm_limits::kLayers, 1);
  for (std::int64_t i = dense; i < model.layer_count(); ++i)
    model.layers[static_cast<std::size_t>(i)].moe = i % frequency == 0;
}

void set_channels(LlmConfig& model, std::int64_t inner) {
  model.mamba.heads = inner;
  model.mamba.head_dim = 1;
}

std::int64_t read_step_rank(FieldReader& reader, const LlmConfig& model, const char* field) {
  constexpr std::int64_t kShare = 16;
  return reader.size_or_word({field}, "auto", llm_limits::kHidden,
                             (model.hidden + kShare - 1) / kShare);
}

void read_hybrid_mamba1(FieldReader& reader, LlmConfig& model) {
  MambaConfig& m = model.mamba;
  set_channels(model, model.hidden * reader.size_or({"mamba_expand"}, llm_limits::kHeads, 2));
  m.state = reader.size_or({"mamba_d_state"}, llm_limits::kHeadDim, 16);
  m.step_rank = read_step_rank(reader, model, "mamba_dt_rank");
  m.conv_kernel = reader.size_or({"mamba_d_conv"}, llm_limits::kHeadDim, 4);
  m.conv_bias = reader.flag("mamba_conv_bias", true);
  m.projection_bias = reader.flag("mamba_proj_bias", false);
  // Says what runs it, not what it is.
  reader.flag("use_mamba_kernels", true);
}

std::int64_t read_top_k(FieldReader& reader, std::int64_t experts) {
  return reader.size({"num_experts_per_tok", "experts_per_token"}, experts);
}

void make_all_layers_moe(FieldReader& reader, LlmConfig& model, std::int64_t experts) {
  model.moe.experts = experts;
  model.moe.experts_per_token = read_top_k(reader, experts);
  model.moe.intermediate = model.mlp.intermediate;
  model.mlp.intermediate = 0;
  for (LayerConfig& layer : model.layers) layer.moe = true;
}

}  // namespace orrery
