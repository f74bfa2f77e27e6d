// SPDX-License-Identifier: Apache-2.0
// Models of Mamba-2 layers in the names and defaults of transformers: Mamba-2 itself (arXiv
// 2405.21060, Mamba2Config), Falcon-H1 (2507.22448, FalconH1Config), whose layers have attention
// beside it, Bamba (BambaConfig) and Granite 4 (GraniteMoeHybridConfig), where layers have either.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// `mamba_d_ssm` elements, or `mamba_expand` times the width, in `mamba_n_heads` heads.
void read_mamba_of_hybrid(FieldReader& reader, LlmConfig& model) {
  MambaConfig& m = model.mamba;
  m.heads = reader.size({"mamba_n_heads"}, llm_limits::kHeads);
  const std::int64_t expanded =
      model.hidden * reader.size_or({"mamba_expand"}, llm_limits::kHeads, 2);
  const std::int64_t inner =
      reader.size_or({"mamba_d_ssm"}, llm_limits::kHidden * llm_limits::kHeads, expanded);
  reader.require_divides("mamba_n_heads", m.heads, inner, "elements");
  m.head_dim = reader.size_or_word({"mamba_d_head"}, "auto", llm_limits::kHeadDim, inner / m.heads);
  if (m.inner() != inner)
    reader.invalid("mamba_d_head",
                   fmt::format("{} heads of {} are not {} elements", m.heads, m.head_dim, inner));
  m.state = reader.size({"mamba_d_state"}, llm_limits::kHeadDim);
  m.groups = reader.size_or({"mamba_n_groups"}, llm_limits::kHeads, 1);
  reader.require_divides("mamba_n_groups", m.groups, m.heads, "heads of Mamba");
  m.conv_kernel = reader.size_or({"mamba_d_conv"}, llm_limits::kHeadDim, 4);
  m.chunk = reader.size_or({"mamba_chunk_size"}, llm_limits::kTokens, 256);
  m.conv_bias = reader.flag("mamba_conv_bias", true);
  m.projection_bias = reader.flag("mamba_proj_bias", false);
}

/// Scales of muP are constants, and a norm in front of its gate costs what one behind it does.
void build_falcon_h1(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  read_mamba_of_hybrid(reader, model);
  model.mamba.norm = reader.flag("mamba_rms_norm", false);
  if (reader.flag("projectors_bias", false) != model.mamba.projection_bias)
    reader.unsupported("a bias in one projection of Mamba alone");
  for (LayerConfig& layer : model.layers) layer.mixer = MixerKind::kMambaAttention;
  reader.ignore({"mamba_norm_before_gate", "mamba_use_mlp", "ssm_multipliers", "ssm_in_multiplier",
                 "ssm_out_multiplier"});
}

/// Layers that `layer_types` calls "mamba" have Mamba-2 in the place of attention.
void read_hybrid_layers(FieldReader& reader, LlmConfig& model, const char* field) {
  const std::vector<std::string> types = reader.texts_or_empty(field);
  reader.require_entries(field, types.size(), model.layers.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "mamba")
      model.layers[i].mixer = MixerKind::kMamba2;
    else if (types[i] != "attention")
      reader.unsupported("layers of type '" + types[i] + "' are not modelled");
  }
}

void build_bamba(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  read_mamba_of_hybrid(reader, model);
  for (LayerConfig& layer : model.layers) layer.mixer = MixerKind::kMamba2;
  for (const std::int64_t i : reader.counts_or_empty("attn_layer_indices", model.layer_count() - 1))
    model.layers[static_cast<std::size_t>(i)].mixer = MixerKind::kAttention;
}

/// Every layer has an MLP for all tokens, beside experts where there are any.
void build_granite_hybrid(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  read_mamba_of_hybrid(reader, model);
  read_hybrid_layers(reader, model, "layer_types");
  const std::int64_t shared = reader.size({"shared_intermediate_size"}, llm_limits::kIntermediate);
  if (reader.text_or({"position_embedding_type"}, "rope") == "nope") model.attention.rotary_dim = 0;
  const std::int64_t experts = reader.count_or({"num_local_experts"}, llm_limits::kExperts, 0);
  if (experts > 0) {
    make_all_layers_moe(reader, model, experts);
    model.moe.shared_experts = 1;
    model.moe.shared_intermediate = shared;
    return;
  }
  model.mlp.intermediate = shared;
  reader.ignore({"num_experts_per_tok"});
}

/// Mamba-2 alone: a norm and a mixer in each layer.
void build_mamba2(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  MambaConfig& m = model.mamba;
  m.heads = reader.size({"num_heads"}, llm_limits::kHeads);
  m.head_dim = reader.size({"head_dim"}, llm_limits::kHeadDim);
  m.state = reader.size({"state_size"}, llm_limits::kHeadDim);
  m.groups = reader.size({"n_groups"}, llm_limits::kHeads);
  reader.require_divides("n_groups", m.groups, m.heads, "heads of Mamba");
  m.conv_kernel = reader.size_or({"conv_kernel"}, llm_limits::kHeadDim, 4);
  m.chunk = reader.size_or({"chunk_size"}, llm_limits::kTokens, 256);
  m.conv_bias = reader.flag("use_conv_bias", true);
  m.projection_bias = reader.flag("use_bias", false);
  m.norm = reader.flag("rms_norm", true);
  for (LayerConfig& layer : model.layers) layer = {.mixer = MixerKind::kMamba2, .feeds = false};
  model.tied_embeddings = reader.tied_embeddings(false);
}

const RegisterFamily kFalconH1({"falcon_h1"}, build_falcon_h1);
const RegisterFamily kBamba({"bamba"}, build_bamba);
const RegisterFamily kGraniteHybrid({"granitemoehybrid"}, build_granite_hybrid);
const RegisterFamily kMambaAlone({"mamba2"}, build_mamba2);

}  // namespace
}  // namespace orrery
