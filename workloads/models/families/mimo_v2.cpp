// SPDX-License-Identifier: Apache-2.0
// MiMo-V2-Flash (Xiaomi, 2025): layers with a window have heads of keys and values of their own
// number and a learned sink; keys and values have different widths everywhere. Names of
// configuration_mimo_v2_flash.py in XiaomiMiMo/MiMo-V2-Flash.
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// The attention of layers with a window.
AttentionConfig windowed_attention(FieldReader& reader, const LlmConfig& model) {
  AttentionConfig a = model.attention;
  a.heads = reader.size_or({"swa_num_attention_heads"}, llm_limits::kHeads, a.heads);
  a.kv_heads = reader.size_or({"swa_num_key_value_heads"}, llm_limits::kHeads, a.kv_heads);
  reader.require_divides("swa_num_key_value_heads", a.kv_heads, a.heads, "attention heads");
  a.head_dim = reader.size_or({"swa_head_dim"}, llm_limits::kHeadDim, a.head_dim);
  a.v_head_dim = reader.size_or({"swa_v_head_dim"}, llm_limits::kHeadDim, a.value_dim());
  a.sinks = reader.flag("add_swa_attention_sink_bias", false);
  return a;
}

void read_mimo_experts(FieldReader& reader, LlmConfig& model) {
  read_deepseek_experts(reader, model.moe);
  const std::vector<std::int64_t> routed = reader.counts_or_empty("moe_layer_freq", 1);
  reader.require_entries("moe_layer_freq", routed.size(), model.layers.size());
  for (std::size_t i = 0; i < routed.size(); ++i) model.layers[i].moe = routed[i] == 1;
}

void build_mimo_v2(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  AttentionConfig& a = model.attention;
  a.v_head_dim = reader.size_or({"v_head_dim"}, llm_limits::kHeadDim, a.head_dim);
  a.sinks = reader.flag("add_full_attention_sink_bias", false);
  const double rotated = reader.fraction_or({"partial_rotary_factor"}, 1);
  a.rotary_dim = static_cast<std::int64_t>(rotated * static_cast<double>(a.head_dim));
  const AttentionConfig windowed = windowed_attention(reader, model);
  const std::int64_t window = read_window(reader);
  // The window once more, under a name that its attention does not read.
  if (reader.count_or({"attention_chunk_size"}, llm_limits::kTokens, window) != window)
    reader.unsupported("chunks other than the window ('attention_chunk_size')");
  const std::vector<std::int64_t> pattern = reader.counts_or_empty("hybrid_layer_pattern", 1);
  reader.require_entries("hybrid_layer_pattern", pattern.size(), model.layers.size());
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == 0) continue;
    model.layers[i].window = window;
    model.layers[i].variant = model.variant_of(windowed);
  }
  // Angles and scales cost the same whatever they are.
  reader.ignore({"swa_rope_theta"});
  read_mimo_experts(reader, model);
}

const RegisterFamily kMimoV2({"mimo_v2_flash"}, build_mimo_v2);

}  // namespace
}  // namespace orrery
