// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/families/family.h"
#include "workloads/llm/limits.h"

namespace orrery {
namespace {

/// MiniMax-M2: norms of queries and keys over all heads, a routing bias per expert, and a list of
/// attention kinds of which only 1, softmax attention, is modelled.
void build_minimax_m2(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  make_all_layers_moe(reader, model, reader.size({"num_local_experts"}, llm_limits::kExperts));
  model.moe.router_bias = reader.flag("use_routing_bias", false);
  model.attention.qk_norm = reader.flag("use_qk_norm", false);
  model.attention.qk_norm_all_heads = reader.text_or({"qk_norm_type"}, "per_layer") == "per_layer";
  for (const std::int64_t kind : reader.counts_or_empty("attn_type_list", llm_limits::kLayers)) {
    if (kind != 1) reader.unsupported("linear attention layers in 'attn_type_list'");
  }
  read_uniform_window(reader, model);
  const std::int64_t modules = reader.count_or({"num_mtp_modules"}, llm_limits::kLayers, 0);
  const std::int64_t layers = reader.count_or({"mtp_transformer_layers"}, llm_limits::kLayers, 1);
  model.mtp_layers = reader.flag("use_mtp", false) ? modules * layers : 0;
}

const RegisterFamily kMinimaxM2({"minimax_m2"}, build_minimax_m2);

}  // namespace
}  // namespace orrery
