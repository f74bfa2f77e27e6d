// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/families/family.h"
#include "workloads/llm/limits.h"

namespace orrery {
namespace {

/// The first `first_k_dense_replace` layers are dense; of the others every `moe_layer_freq`-th has
/// experts.
void read_experts(FieldReader& reader, LlmConfig& model) {
  MoeConfig& moe = model.moe;
  moe.experts = reader.size({"n_routed_experts"}, llm_limits::kExperts);
  moe.experts_per_token = read_top_k(reader, moe.experts);
  moe.groups = reader.count_or({"n_group"}, llm_limits::kExperts, 0);
  moe.top_groups = reader.count_or({"topk_group"}, llm_limits::kExperts, 0);
  moe.intermediate = reader.size({"moe_intermediate_size"}, llm_limits::kIntermediate);
  moe.shared_experts = reader.count_or({"n_shared_experts"}, llm_limits::kSharedExperts, 0);
  moe.shared_intermediate = moe.shared_experts * moe.intermediate;
  moe.router_bias = reader.text_or({"topk_method"}, "") == "noaux_tc";
  const std::int64_t dense = reader.count_or({"first_k_dense_replace"}, llm_limits::kLayers, 0);
  const std::int64_t frequency = reader.size_or({"moe_layer_freq"}, llm_limits::kLayers, 1);
  for (std::int64_t i = dense; i < model.layer_count(); ++i) {
    model.layers[static_cast<std::size_t>(i)].moe = i % frequency == 0;
  }
}

/// DeepSeek-V2 (arXiv 2405.04434), section 2.1. `q_lora_rank` is null where queries are projected
/// directly (V2-Lite).
void read_latent_attention(FieldReader& reader, LlmConfig& model) {
  AttentionConfig& a = model.attention;
  a.kind = AttentionKind::kLatent;
  a.heads = reader.size({"num_attention_heads"}, llm_limits::kHeads);
  a.kv_heads = a.heads;
  a.q_lora_rank = reader.count_or({"q_lora_rank"}, llm_limits::kHidden, 0);
  a.kv_lora_rank = reader.size({"kv_lora_rank"}, llm_limits::kHidden);
  a.qk_nope_head_dim = reader.size({"qk_nope_head_dim"}, llm_limits::kHeadDim);
  a.qk_rope_head_dim = reader.size({"qk_rope_head_dim"}, llm_limits::kHeadDim);
  a.v_head_dim = reader.size({"v_head_dim"}, llm_limits::kHeadDim);
  a.head_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
  if (reader.flag("attention_bias", false)) {
    reader.unsupported("biases in latent attention are not modelled");
  }
}

void build_deepseek(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  read_experts(reader, model);
}

void build_deepseek_mla(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_latent_attention(reader, model);
  model.mlp.intermediate = reader.size({"intermediate_size"}, llm_limits::kIntermediate);
  model.tied_embeddings = reader.tied_embeddings(false);
  read_experts(reader, model);
  model.mtp_layers = reader.count_or({"num_nextn_predict_layers"}, llm_limits::kLayers, 0);
}

const RegisterFamily kDeepseek({"deepseek"}, build_deepseek);
const RegisterFamily kDeepseekMla({"deepseek_v2", "deepseek_v3", "kimi_k2"}, build_deepseek_mla);

}  // namespace
}  // namespace orrery
