// SPDX-License-Identifier: Apache-2.0
// Step-3.5-Flash (arXiv 2602.10604) and Step-3.7-Flash: layers with a window have more heads, heads
// have gates, experts follow the first dense layers. Names of configuration_step3p5.py in
// stepfun-ai/Step-3.5-Flash, and those of shorter files of 3.7.
#include <sstream>
#include <string>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// Attention of the layers with a window: `attention_other_setting`, or what the configuration of
/// Step-3.5-Flash, whose trunk Step-3.7-Flash has, says there.
AttentionConfig read_windowed_attention(FieldReader& reader, const AttentionConfig& attention) {
  constexpr std::int64_t kPublishedHeads = 96;
  AttentionConfig own = attention;
  own.rotary_dim = std::nullopt;
  std::vector<FieldReader> other = reader.inner("attention_other_setting");
  if (other.empty()) {
    own.heads = kPublishedHeads;
    reader.note_class_default("attention_other_setting.num_attention_heads", "96");
    return own;
  }
  FieldReader& settings = other.front();
  own.heads = settings.size({"num_attention_heads"}, llm_limits::kHeads);
  own.kv_heads = settings.size({"num_attention_groups"}, own.heads);
  own.head_dim = settings.size({"head_dim"}, llm_limits::kHeadDim);
  if (own.heads % own.kv_heads != 0)
    settings.invalid("num_attention_groups", "must divide num_attention_heads");
  return own;
}

void read_step_attention(FieldReader& reader, LlmConfig& model) {
  AttentionConfig& a = model.attention;
  a.heads = reader.size({"num_attention_heads"}, llm_limits::kHeads);
  a.kv_heads = reader.size({"num_key_value_heads", "num_attention_groups"}, a.heads);
  if (a.heads % a.kv_heads != 0)
    reader.invalid("num_key_value_heads", "must divide num_attention_heads");
  a.head_dim = reader.size({"head_dim"}, llm_limits::kHeadDim);
  a.qk_norm = true;
  a.head_gate = reader.flag_of_class("use_head_wise_attn_gate", true);
  a.rotary_dim = a.head_dim / 2;  // partial_rotary_factors of layers that see all
  const std::int64_t window = read_window(reader);
  if (!read_layer_types(reader, model, window)) reader.invalid("layer_types", "missing");
  const AttentionConfig windowed = read_windowed_attention(reader, a);
  for (LayerConfig& layer : model.layers)
    if (layer.window > 0) layer.variant = model.variant_of(windowed);
}

/// Layers with experts by `moe_layers_enum` ("3,4,5"), or all behind the first dense ones.
void read_routed_layers(FieldReader& reader, LlmConfig& model) {
  const std::string listed = reader.text_or({"moe_layers_enum"}, "");
  const std::int64_t dense = reader.count_or({"first_k_dense_replace"}, llm_limits::kLayers, 0);
  for (std::int64_t i = dense; listed.empty() && i < model.layer_count(); ++i)
    model.layers[static_cast<std::size_t>(i)].moe = true;
  std::istringstream numbers(listed);
  for (std::string text; std::getline(numbers, text, ',');) {
    const bool digits = !text.empty() && text.size() < 5 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stol(text) >= model.layer_count())
      reader.invalid("moe_layers_enum", "expected numbers of layers, got '" + text + "'");
    model.layers[static_cast<std::size_t>(std::stol(text))].moe = true;
  }
}

void build_step3(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_step_attention(reader, model);
  model.mlp.intermediate = reader.size({"intermediate_size"}, llm_limits::kIntermediate);
  model.tied_embeddings = reader.tied_embeddings(false);
  MoeConfig& moe = model.moe;
  moe.experts = reader.size({"num_experts", "moe_num_experts"}, llm_limits::kExperts);
  moe.experts_per_token = reader.size({"num_experts_per_tok", "moe_top_k"}, moe.experts);
  moe.intermediate = reader.size({"moe_intermediate_size"}, llm_limits::kIntermediate);
  moe.shared_experts = reader.count_or({"n_shared_experts"}, llm_limits::kSharedExperts, 1);
  moe.shared_intermediate =
      moe.shared_experts * reader.size({"share_expert_dim"}, llm_limits::kIntermediate);
  moe.router_bias = reader.flag("use_moe_router_bias", false);
  read_routed_layers(reader, model);
  model.mtp_layers = reader.count_or({"num_nextn_predict_layers"}, llm_limits::kLayers, 0);
  // Numbers and functions that cost the same whatever they are.
  reader.ignore({"moe_router_scaling_factor", "moe_router_activation"});
  reader.defaults_are_of("stepfun-ai/Step-3.5-Flash");
}

const RegisterFamily kStep3({"step3p5", "step3p7"}, build_step3);

}  // namespace
}  // namespace orrery
