// SPDX-License-Identifier: Apache-2.0
#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// gpt-oss (arXiv 2508.10925): alternating windows, a learned sink per head, biases everywhere but
/// in the head, and in router and experts too.
void build_gpt_oss(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  make_all_layers_moe(reader, model,
                      reader.size({"num_local_experts", "num_experts"}, llm_limits::kExperts));
  model.moe.router_bias = true;
  model.moe.expert_bias = true;
  model.moe.clamped = true;
  model.attention.qkv_bias = model.attention.output_bias = reader.flag("attention_bias", true);
  model.attention.sinks = true;
  read_alternating_windows(reader, model);
}

const RegisterFamily kGptOss({"gpt_oss"}, build_gpt_oss);

}  // namespace
}  // namespace orrery
