// SPDX-License-Identifier: Apache-2.0
// Models of Mamba-1 layers in the names and defaults of transformers: Mamba itself (arXiv
// 2312.00752, MambaConfig), Falcon Mamba (2410.05355) and Jamba (2403.19887, JambaConfig), whose
// layers have attention in a ratio, and experts in another.

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// A norm and a mixer in each layer. Falcon Mamba norms steps, B and C without weights.
void build_mamba(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  MambaConfig& m = model.mamba;
  m.state = reader.size_or({"state_size"}, llm_limits::kHeadDim, 16);
  const std::int64_t expand = reader.size_or({"expand"}, llm_limits::kHeads, 2);
  set_channels(model, reader.size_or({"intermediate_size"}, llm_limits::kIntermediate,
                                     expand * model.hidden));
  m.step_rank = read_step_rank(reader, model, "time_step_rank");
  m.conv_kernel = reader.size_or({"conv_kernel"}, llm_limits::kHeadDim, 4);
  m.conv_bias = reader.flag("use_conv_bias", true);
  m.projection_bias = reader.flag("use_bias", false);
  m.norm = false;
  m.selection_norms = model.family == "falcon_mamba";
  for (LayerConfig& layer : model.layers) layer = {.mixer = MixerKind::kMamba1, .feeds = false};
  model.tied_embeddings = reader.tied_embeddings(model.family == "mamba");
}

/// Layers that come every so often, counted from an offset.
struct Period {
  std::int64_t every = 1, first = 0;
  bool holds(std::int64_t layer) const { return layer % every == first; }
};

Period read_period(FieldReader& reader, const char* every, const char* first, Period known) {
  return {reader.size_or({every}, llm_limits::kLayers, known.every),
          reader.count_or({first}, llm_limits::kLayers, known.first)};
}

void build_jamba(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.attention.rotary_dim = 0;
  read_hybrid_mamba1(reader, model);
  model.mamba.norm = model.mamba.selection_norms = true;
  const Period attends = read_period(reader, "attn_layer_period", "attn_layer_offset", {8, 4});
  const Period routes = read_period(reader, "expert_layer_period", "expert_layer_offset", {2, 1});
  MoeConfig& moe = model.moe;
  moe.experts = reader.size_or({"num_experts"}, llm_limits::kExperts, 16);
  if (moe.experts > 1) {
    moe.experts_per_token = reader.size_or({"num_experts_per_tok"}, moe.experts, 2);
    moe.intermediate = model.mlp.intermediate;
  } else {
    moe.experts = 0;
    reader.ignore({"num_experts_per_tok"});
  }
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    LayerConfig& layer = model.layers[static_cast<std::size_t>(i)];
    layer.moe = model.has_moe() && routes.holds(i);
    if (!attends.holds(i)) layer.mixer = MixerKind::kMamba1;
  }
}

const RegisterFamily kMambaOne({"mamba", "falcon_mamba"}, build_mamba);
const RegisterFamily kJamba({"jamba"}, build_jamba);

}  // namespace
}  // namespace orrery
