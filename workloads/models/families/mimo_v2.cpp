// SPDX-License-Identifier: Apache-2.0
// MiMo-V2-Flash (Xiaomi, 2025): layers with a window have heads of keys and values of their own
// number and a learned sink; keys and values have different widths everywhere. Names of
// configuration_mimo_v2_flash.py in XiaomiMiMo/MiMo-V2-Flash.
#include "workloads/base/limits.h"
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// The attention of layers with a window.
AttentionConfig windowed_attention(FieldReader& reader, const LlmConfig& model) {
  AttentionConfig a = model.attention;
  a.heads = reader.size_or({"swa_num_attention_heads"}, llm_limits::kHeads, a.heads);
  a.kv_heads = reader.size_or({"swa_num_key_value_heads"}, llm_limits::kHeads, a.kv_heads);
  if (a.heads % a.kv_heads != 0)
    reader.invalid("swa_num_key_value_heads", std::to_string(a.kv_heads) + " does not divide " +
                                                  std::to_string(a.heads) + " attention heads");
  a.head_dim = reader.size_or({"swa_head_dim"}, llm_limits::kHeadDim, a.head_dim);
  a.v_head_dim = reader.size_or({"swa_v_head_dim"}, llm_limits::kHeadDim, a.value_dim());
  a.sinks = reader.flag("add_swa_attention_sink_bias", false);
  return a;
}

void read_mimo_experts(FieldReader& reader, LlmConfig& model) {
  MoeConfig& moe = model.moe;
  moe.experts = reader.size({"n_routed_experts"}, llm_limits::kExperts);
  moe.experts_per_token = read_top_k(reader, moe.experts);
  moe.groups = reader.count_or({"n_group"}, llm_limits::kExperts, 0);
  moe.top_groups = reader.count_or({"topk_group"}, llm_limits::kExperts, 0);
  moe.intermediate = reader.size({"moe_intermediate_size"}, llm_limits::kIntermediate);
  moe.shared_experts = reader.count_or({"n_shared_experts"}, llm_limits::kSharedExperts, 0);
  moe.shared_intermediate = moe.shared_experts * moe.intermediate;
  moe.router_bias = reader.text_or({"topk_method"}, "") == "noaux_tc";
  const std::vector<std::int64_t> routed = reader.counts_or_empty("moe_layer_freq", 1);
  if (routed.size() != model.layers.size())
    reader.invalid("moe_layer_freq", "expected " + std::to_string(model.layers.size()) +
                                         " entries, got " + std::to_string(routed.size()));
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
  if (pattern.size() != model.layers.size())
    reader.invalid("hybrid_layer_pattern", "expected " + std::to_string(model.layers.size()) +
                                               " entries, got " + std::to_string(pattern.size()));
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
