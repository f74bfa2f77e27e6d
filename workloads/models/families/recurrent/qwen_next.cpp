// SPDX-License-Identifier: Apache-2.0
// Qwen3-Next, Qwen3.5 and Qwen3.6: gated delta networks beside gated attention, with dense MLPs or
// experts. Names and defaults of transformers' Qwen3NextConfig and Qwen3_5TextConfig.
#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

void read_delta_net(FieldReader& reader, LlmConfig& model) {
  DeltaNetConfig& net = model.delta_net;
  net.key_heads = reader.size({"linear_num_key_heads"}, llm_limits::kHeads);
  net.value_heads = reader.size({"linear_num_value_heads"}, llm_limits::kHeads);
  reader.require_divides("linear_num_key_heads", net.key_heads, net.value_heads, "value heads");
  net.key_dim = reader.size({"linear_key_head_dim"}, llm_limits::kHeadDim);
  net.value_dim = reader.size({"linear_value_head_dim"}, llm_limits::kHeadDim);
  net.conv_kernel = reader.size_or({"linear_conv_kernel_dim"}, llm_limits::kHeadDim, 4);
  const std::string state = reader.text_or({"mamba_ssm_dtype"}, "float32");
  if (state != "float32") reader.unsupported("states in " + state + " are not modelled");
}

/// `layer_types`, or attention in every `full_attention_interval`-th layer.
void read_kinds(FieldReader& reader, LlmConfig& model) {
  const std::vector<std::string> types = reader.texts_or_empty("layer_types");
  const std::int64_t interval = reader.size_or({"full_attention_interval"}, llm_limits::kLayers, 4);
  if (!types.empty()) reader.require_entries("layer_types", types.size(), model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const bool listed = !types.empty();
    if (listed && types[i] != "linear_attention" && types[i] != "full_attention")
      reader.unsupported("layers of type '" + types[i] + "' are not modelled");
    const bool attends =
        listed ? types[i] == "full_attention" : (static_cast<std::int64_t>(i) + 1) % interval == 0;
    if (!attends) model.layers[i].mixer = MixerKind::kDeltaNet;
  }
}

void read_mixers(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_grouped_attention(reader, model);
  model.attention.qkv_bias = model.attention.output_bias = reader.flag("attention_bias", false);
  model.attention.qk_norm = true;
  model.attention.output_gate = reader.flag("attn_output_gate", true);
  read_kinds(reader, model);
  read_delta_net(reader, model);
  model.tied_embeddings = reader.tied_embeddings(false);
  model.mtp_layers = reader.count_or({"mtp_num_hidden_layers"}, llm_limits::kLayers, 0);
  if (reader.flag("mtp_use_dedicated_embeddings", false))
    reader.unsupported("embeddings of their own in modules of multi-token prediction");
}

void build_qwen3_5(FieldReader& reader, LlmConfig& model) {
  read_mixers(reader, model);
  model.mlp.intermediate = reader.size({"intermediate_size"}, llm_limits::kIntermediate);
  reader.counts_or_empty("mlp_only_layers", llm_limits::kLayers);  // all of them are MLPs
  model.module = LayerConfig{};
}

/// `intermediate_size`, where it is given, is that of layers without experts.
void build_qwen3_next(FieldReader& reader, LlmConfig& model) {
  read_mixers(reader, model);
  model.mlp.intermediate = reader.count_or({"intermediate_size"}, llm_limits::kIntermediate, 0);
  read_qwen_moe(reader, model);
  if (model.has_mlp() && model.mlp.intermediate == 0)
    reader.invalid("intermediate_size", "missing, but layers without experts need it");
  model.module = LayerConfig{.moe = true};
}

const RegisterFamily kQwen35({"qwen3_5_text"}, build_qwen3_5);
const RegisterFamily kQwen3Next({"qwen3_next", "qwen3_5_moe_text"}, build_qwen3_next);

}  // namespace
}  // namespace orrery
