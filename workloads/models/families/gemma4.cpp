// SPDX-License-Identifier: Apache-2.0
// Gemma 4 (ai.google.dev/gemma/docs/core/model_card_4), in the names of transformers'
// Gemma4TextConfig and as modeling_gemma4.py reads them.
#include <utility>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// Layers that see all have wider heads, fewer of keys and values, and no matrix of values: these
/// are what the matrix of keys gives, normed without weights and not rotated, so that the cache has
/// both.
AttentionConfig global_attention(FieldReader& reader, const LlmConfig& model) {
  AttentionConfig a = model.attention;
  a.values_of_keys = reader.flag("attention_k_eq_v", false);
  const std::int64_t kv_heads = reader.size_or({"num_global_key_value_heads"}, a.heads, a.kv_heads);
  if (a.values_of_keys) a.kv_heads = kv_heads;
  reader.require_divides("num_global_key_value_heads", a.kv_heads, a.heads, "attention heads");
  a.head_dim = reader.size_or({"global_head_dim"}, llm_limits::kHeadDim, 512);
  return a;
}

/// The MLP of a layer stays where experts stand beside it, as shared experts do; the results of
/// both have norms of their own, and so have what experts and router read. The router scales each
/// column of its input and each expert.
void read_gemma4_experts(FieldReader& reader, LlmConfig& model) {
  const bool there = reader.flag("enable_moe_block", false);
  const std::int64_t experts = reader.count_or({"num_experts"}, llm_limits::kExperts, 0);
  const std::int64_t chosen =
      reader.count_or({"top_k_experts", "num_experts_per_tok"}, llm_limits::kExperts, 0);
  const std::int64_t width = reader.count_or({"moe_intermediate_size", "expert_intermediate_size"},
                                             llm_limits::kIntermediate, 0);
  if (!there) return;
  for (const auto& [field, value] : {std::pair{"num_experts", experts},
                                     {"top_k_experts", chosen},
                                     {"moe_intermediate_size", width}})
    if (value == 0) reader.invalid(field, "missing, but enable_moe_block needs it");
  MoeConfig& moe = model.moe;
  moe.experts = experts;
  moe.experts_per_token = chosen;
  if (chosen > experts) reader.invalid("top_k_experts", "more than experts");
  moe.intermediate = width;
  moe.shared_experts = 1;
  moe.shared_intermediate = model.mlp.intermediate;
  moe.router_bias = true;  // per_expert_scale
  moe.norms = 4;
  for (LayerConfig& layer : model.layers) layer.moe = true;
}

void build_gemma4(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.tied_embeddings = reader.tied_embeddings(true);
  model.norms_per_layer = 4;
  model.attention.qk_norm = true;
  model.attention.value_norm = true;
  const std::int64_t per_layer =
      reader.count_or({"hidden_size_per_layer_input"}, llm_limits::kHidden, 0);
  reader.count_or({"vocab_size_per_layer_input"}, llm_limits::kVocabulary, 0);
  if (per_layer > 0) reader.unsupported("embeddings of each layer ('hidden_size_per_layer_input')");
  if (reader.count_or({"num_kv_shared_layers"}, llm_limits::kLayers, 0) > 0)
    reader.unsupported("layers that share a cache ('num_kv_shared_layers')");
  if (reader.flag("use_double_wide_mlp", false))
    reader.unsupported("MLPs of two widths ('use_double_wide_mlp')");
  const std::int64_t window = read_window(reader);
  if (!read_layer_types(reader, model, window)) reader.invalid("layer_types", "missing");
  const AttentionConfig global = global_attention(reader, model);
  for (LayerConfig& layer : model.layers)
    if (layer.window == 0) layer.variant = model.variant_of(global);
  read_gemma4_experts(reader, model);
}

const RegisterFamily kGemma4({"gemma4_text"}, build_gemma4);

}  // namespace
}  // namespace orrery
