// SPDX-License-Identifier: Apache-2.0
// Kimi Linear (arXiv 2510.26692) and Kimi K3: Kimi delta attention beside latent attention without
// positions. K3 has gates on both, experts in a latent width and attention residuals. Names and
// defaults of Moonshot's configuration_kimi_k3.py.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// Layers are counted from 1.
void read_kimi_mixers(FieldReader& reader, LlmConfig& model) {
  std::optional<FieldReader> linear = reader.section("linear_attn_config");
  if (!linear) reader.invalid("linear_attn_config", "missing");
  DeltaNetConfig& net = model.delta_net;
  net.key_heads = net.value_heads = linear->size({"num_heads"}, llm_limits::kHeads);
  net.key_dim = net.value_dim = linear->size({"head_dim"}, llm_limits::kHeadDim);
  net.conv_kernel = linear->size_or({"short_conv_kernel_size"}, llm_limits::kHeadDim, 4);
  net.column_decays = true;
  net.decay_rank = net.key_dim;
  net.gate_rank = linear->flag("use_full_rank_gate", false) ? 0 : net.value_dim;
  std::vector<bool> known(model.layers.size(), false);
  const auto mark = [&](const char* list, MixerKind kind) {
    for (const std::int64_t number : linear->counts_or_empty(list, model.layer_count())) {
      if (number == 0) linear->invalid(list, "layers are counted from 1");
      model.layers[static_cast<std::size_t>(number - 1)].mixer = kind;
      known[static_cast<std::size_t>(number - 1)] = true;
    }
  };
  mark("kda_layers", MixerKind::kKimiDelta);
  mark("full_attn_layers", MixerKind::kAttention);
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!known[i])
      linear->invalid("kda_layers",
                      fmt::format("layer {} is neither here nor in full_attn_layers", i + 1));
  linear->refuse_unread_structure();
}

void read_kimi_experts(FieldReader& reader, LlmConfig& model) {
  MoeConfig& moe = model.moe;
  moe.experts = reader.size({"num_experts"}, llm_limits::kExperts);
  moe.experts_per_token =
      reader.size({"num_experts_per_token", "num_experts_per_tok"}, moe.experts);
  moe.groups = reader.count_or({"num_expert_group"}, llm_limits::kExperts, 0);
  moe.top_groups = reader.count_or({"topk_group"}, llm_limits::kExperts, 0);
  moe.intermediate = reader.size({"moe_intermediate_size"}, llm_limits::kIntermediate);
  moe.latent = reader.count_or({"routed_expert_hidden_size"}, llm_limits::kHidden, 0);
  moe.latent_norm = moe.latent > 0 && reader.flag("latent_moe_use_norm", false);
  moe.shared_experts = reader.count_or({"num_shared_experts"}, llm_limits::kSharedExperts, 0);
  moe.shared_intermediate = moe.shared_experts * moe.intermediate;
  moe.router_bias = true;                                            // e_score_correction_bias
  reader.ignore({"moe_renormalize", "moe_router_activation_func"});  // make scores
  read_layers_behind_dense(reader, model);
}

void build_kimi_linear(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  read_latent_attention(reader, model);
  model.attention.rotates = !reader.flag("mla_use_nope", false);
  model.attention.output_gate = reader.flag("mla_use_output_gate", false);
  model.mlp.intermediate = reader.size({"intermediate_size"}, llm_limits::kIntermediate);
  model.tied_embeddings = reader.tied_embeddings(false);
  const std::string function = reader.text_or({"hidden_act"}, "silu");
  if (function != "silu" && function != "situ")
    reader.unsupported("an MLP with '" + function + "' is not modelled");
  reader.ignore({"activation_situ_linear_beta"});
  read_kimi_experts(reader, model);
  read_kimi_mixers(reader, model);
  model.residual_block = reader.count_or({"attn_res_block_size"}, llm_limits::kLayers, 0);
  for (std::int64_t i = 0; model.residual_block > 0 && i < model.layer_count(); ++i) {
    LayerConfig& layer = model.layers[static_cast<std::size_t>(i)];
    layer.sources = 2 + i / model.residual_block;  // the embedding, blocks before, and this one
    layer.begins_block = i % model.residual_block == 0;
  }
  model.mtp_layers = reader.count_or({"num_nextn_predict_layers"}, llm_limits::kLayers, 0);
}

const RegisterFamily kKimiLinear({"kimi_linear"}, build_kimi_linear);

}  // namespace
}  // namespace orrery
