// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

void read_experts(FieldReader& reader, LlmConfig& model) {
  read_deepseek_experts(reader, model.moe);
  read_layers_behind_dense(reader, model);
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

/// `mlp_layer_types`, where it is given, instead of `first_k_dense_replace`.
void read_mlp_types(FieldReader& reader, LlmConfig& model) {
  const std::vector<std::string> types = reader.texts_or_empty("mlp_layer_types");
  if (types.empty()) return;
  reader.require_entries("mlp_layer_types", types.size(), model.layers.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "dense" && types[i] != "sparse")
      reader.unsupported("an MLP of type '" + types[i] + "' is not modelled");
    model.layers[i].moe = types[i] == "sparse";
  }
}

/// The lightning indexer of DeepSeek-V3.2 and GLM-5. `indexer_types` of GLM-5.2 says which layers
/// have one; `shared` ones attend to what the last of those before has chosen. Modules have one.
void build_deepseek_sparse(FieldReader& reader, LlmConfig& model) {
  build_deepseek_mla(reader, model);
  read_mlp_types(reader, model);
  // Another name of the same; and what the classes of both always have.
  if (reader.count_or({"num_experts"}, llm_limits::kExperts, model.moe.experts) !=
      model.moe.experts)
    reader.invalid("num_experts", "differs from n_routed_experts");
  model.moe.router_bias = true;
  if (reader.flag("mlp_bias", false)) reader.unsupported("biases in the MLP are not modelled");
  IndexerConfig& indexer = model.attention.indexer;
  indexer.heads = reader.size({"index_n_heads"}, llm_limits::kHeads);
  indexer.head_dim = reader.size({"index_head_dim"}, llm_limits::kHeadDim);
  indexer.top_k = reader.size({"index_topk"}, llm_limits::kTokens);
  const std::vector<std::string> types = reader.texts_or_empty("indexer_types");
  if (!types.empty()) reader.require_entries("indexer_types", types.size(), model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const bool shares = !types.empty() && types[i] == "shared";
    if (!types.empty() && !shares && types[i] != "full")
      reader.unsupported("an indexer of type '" + types[i] + "' is not modelled");
    if (i == 0 && shares) reader.invalid("indexer_types", "the first layer has none to share");
    model.layers[i].mixer = shares ? MixerKind::kSharedSparse : MixerKind::kSparse;
  }
  for (const std::string& type : reader.texts_or_empty("layer_types"))
    if (type != "deepseek_sparse_attention")
      reader.unsupported("layers of type '" + type + "' are not modelled");
  // The rule that indexer_types was made by; what passes of a module share; fp32 scores.
  reader.ignore({"index_topk_freq", "index_skip_topk_offset", "index_topk_pattern",
                 "index_share_for_mtp_iteration", "moe_router_dtype"});
  model.module = LayerConfig{.moe = true, .mixer = MixerKind::kSparse};
}

const RegisterFamily kDeepseek({"deepseek"}, build_deepseek);
const RegisterFamily kDeepseekMla({"deepseek_v2", "deepseek_v3", "kimi_k2"}, build_deepseek_mla);
const RegisterFamily kDeepseekSparse({"deepseek_v32", "glm_moe_dsa"}, build_deepseek_sparse);

}  // namespace

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
  if (reader.flag("attention_bias", false))
    reader.unsupported("biases in latent attention are not modelled");
}

}  // namespace orrery
