// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workloads/llm/llm_config.h"

namespace orrery {
namespace {

/// Elements of a part of a layer: of matrices (FLOPs follow from them) and of vectors added or
/// multiplied elementwise.
struct Elements {
  std::int64_t matrices = 0;
  std::int64_t vectors = 0;

  std::int64_t total() const { return matrices + vectors; }
  Elements& operator+=(const Elements& other) {
    matrices += other.matrices;
    vectors += other.vectors;
    return *this;
  }
};

Elements operator*(std::int64_t count, const Elements& e) {
  return {count * e.matrices, count * e.vectors};
}

Elements grouped_attention(const LlmConfig& model) {
  const AttentionConfig& a = model.attention;
  const std::int64_t query = a.heads * a.head_dim;
  const std::int64_t key = a.kv_heads * a.head_dim;
  Elements e;
  e.matrices = model.hidden * (query + 2 * key) + query * model.hidden;
  if (a.qkv_bias) e.vectors += query + 2 * key;
  if (a.output_bias) e.vectors += model.hidden;
  if (a.qk_norm) e.vectors += a.qk_norm_all_heads ? query + key : 2 * a.head_dim;
  if (a.sinks) e.vectors += a.heads;
  return e;
}

/// DeepSeek-V2 (arXiv 2405.04434), section 2.1: queries and keys/values pass through a low rank,
/// with a norm on each; one rotary key is shared by all heads.
Elements latent_attention(const LlmConfig& model) {
  const AttentionConfig& a = model.attention;
  const std::int64_t query = a.heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
  Elements e;
  if (a.q_lora_rank > 0) {
    e.matrices += model.hidden * a.q_lora_rank + a.q_lora_rank * query;
    e.vectors += a.q_lora_rank;
  } else {
    e.matrices += model.hidden * query;
  }
  e.matrices += model.hidden * (a.kv_lora_rank + a.qk_rope_head_dim);
  e.vectors += a.kv_lora_rank;
  e.matrices += a.kv_lora_rank * a.heads * (a.qk_nope_head_dim + a.v_head_dim);
  e.matrices += a.heads * a.v_head_dim * model.hidden;
  return e;
}

Elements attention(const LlmConfig& model) {
  return model.attention.kind == AttentionKind::kLatent ? latent_attention(model)
                                                        : grouped_attention(model);
}

Elements mlp(std::int64_t hidden, std::int64_t intermediate, bool gated, bool bias) {
  const std::int64_t inputs = gated ? 2 : 1;
  Elements e;
  e.matrices = (inputs + 1) * hidden * intermediate;
  if (bias) e.vectors = inputs * intermediate + hidden;
  return e;
}

/// Router, shared experts and `experts` routed ones. Every token meets the whole router.
Elements moe(const LlmConfig& model, std::int64_t experts) {
  const MoeConfig& m = model.moe;
  if (!model.has_moe()) return {};
  Elements e{model.hidden * m.experts, m.router_bias ? m.experts : 0};
  e += experts * mlp(model.hidden, m.intermediate, model.mlp.gated, m.expert_bias);
  e += mlp(model.hidden, m.shared_intermediate, model.mlp.gated, false);
  if (m.shared_gate) e.matrices += model.hidden;
  return e;
}

}  // namespace

std::int64_t AttentionConfig::kv_elements_per_token() const {
  if (kind == AttentionKind::kLatent) return kv_lora_rank + qk_rope_head_dim;
  return 2 * kv_heads * head_dim;
}

ParameterCount count_parameters(const LlmConfig& model) {
  const std::int64_t norm = model.hidden * (model.norm_bias ? 2 : 1);
  const std::int64_t moe_layers = std::count_if(model.layers.begin(), model.layers.end(),
                                                [](const LayerConfig& layer) { return layer.moe; });
  const std::int64_t dense_layers = model.layer_count() - moe_layers;
  const Elements self = attention(model);
  const Elements dense = mlp(model.hidden, model.mlp.intermediate, model.mlp.gated, model.mlp.bias);
  const Elements routed = moe(model, model.moe.experts);
  const Elements active = moe(model, model.moe.experts_per_token);

  ParameterCount count;
  count.embedding = (model.vocabulary + model.positions) * model.hidden;
  count.head = model.tied_embeddings ? 0 : model.vocabulary * model.hidden;
  count.attention_per_layer = self.total();
  count.mlp_per_dense_layer = dense.total();
  count.moe_per_layer = routed.total();
  count.active_moe_per_layer = active.total();
  count.norms_per_layer = model.norms_per_layer * norm;
  count.final_norm = model.final_norm ? norm : 0;

  const std::int64_t shared = count.embedding + count.head + count.final_norm +
                              model.layer_count() * (self.total() + count.norms_per_layer) +
                              dense_layers * dense.total();
  count.total = shared + moe_layers * routed.total();
  count.active = shared + moe_layers * active.total();
  count.active_matrices = model.vocabulary * model.hidden + model.layer_count() * self.matrices +
                          dense_layers * dense.matrices + moe_layers * active.matrices;
  return count;
}

}  // namespace orrery
