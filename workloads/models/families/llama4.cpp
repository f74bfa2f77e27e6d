// SPDX-License-Identifier: Apache-2.0
// Llama 4 (ai.meta.com, "The Llama 4 herd", April 2025), in the names and defaults of
// transformers' Llama4TextConfig and as modeling_llama4.py reads them.
#include <algorithm>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// 1 where positions are rotated: every layer but each fourth, unless the file lists them.
std::vector<bool> read_rotary_layers(FieldReader& reader, const LlmConfig& model) {
  const std::int64_t every =
      reader.size_of_class({"no_rope_layer_interval"}, llm_limits::kLayers, 4);
  const auto listed = reader.counts_or_empty("no_rope_layers", 1);
  if (!listed.empty()) reader.require_entries("no_rope_layers", listed.size(), model.layers.size());
  std::vector<bool> rotary;
  rotary.reserve(model.layers.size());
  for (std::int64_t i = 0; i < model.layer_count(); ++i)
    rotary.push_back(listed.empty() ? (i + 1) % every != 0
                                    : listed[static_cast<std::size_t>(i)] == 1);
  return rotary;
}

/// Layers that rotate positions see their chunk alone and norm queries and keys without weights;
/// the others see all and do neither.
void read_chunks(FieldReader& reader, LlmConfig& model) {
  AttentionConfig& a = model.attention;
  a.qk_norm = reader.flag_of_class("use_qk_norm", true);
  a.norm_scales = false;
  AttentionConfig unrotated = a;
  unrotated.qk_norm = false;
  unrotated.rotary_dim = 0;
  const std::int64_t chunk =
      reader.size_of_class({"attention_chunk_size"}, llm_limits::kTokens, 8192);
  const std::vector<bool> rotary = read_rotary_layers(reader, model);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (rotary[i])
      model.layers[i].chunk = chunk;
    else
      model.layers[i].variant = model.variant_of(unrotated);
  }
  // transformers writes what follows from no_rope_layers once more.
  const auto types = reader.texts_or_empty("layer_types");
  for (std::size_t i = 0; i < types.size(); ++i)
    if (i >= rotary.size() || (types[i] == "chunked_attention") != rotary[i])
      reader.unsupported("layer_types that differ from no_rope_layers are not modelled");
}

/// Experts stand in every `interleave_moe_layer_step`-th layer, each beside one shared expert of
/// the same width; the MLP of the others has a width of its own.
void read_llama4_experts(FieldReader& reader, LlmConfig& model) {
  MoeConfig& moe = model.moe;
  moe.experts = reader.size({"num_local_experts"}, llm_limits::kExperts);
  moe.experts_per_token = read_top_k(reader, moe.experts);
  moe.intermediate = model.mlp.intermediate;
  moe.shared_experts = 1;
  moe.shared_intermediate = moe.intermediate;
  model.mlp.intermediate =
      reader.size_of_class({"intermediate_size_mlp"}, llm_limits::kIntermediate, 16384);
  const std::int64_t step =
      reader.size_of_class({"interleave_moe_layer_step"}, llm_limits::kLayers, 1);
  const auto listed = reader.counts_or_empty("moe_layers", llm_limits::kLayers);
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    const bool named = std::ranges::find(listed, i) != listed.end();
    model.layers[static_cast<std::size_t>(i)].moe = listed.empty() ? (i + 1) % step == 0 : named;
  }
}

void build_llama4(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  read_chunks(reader, model);
  read_llama4_experts(reader, model);
  reader.defaults_are_of("Llama4TextConfig");
}

const RegisterFamily kLlama4({"llama4_text"}, build_llama4);

}  // namespace
}  // namespace orrery
