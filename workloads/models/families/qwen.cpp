// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// Windows are off unless `use_sliding_window`; then they start at layer `max_window_layers`.
void read_qwen_windows(FieldReader& reader, LlmConfig& model) {
  const std::int64_t given = read_window(reader);
  const std::int64_t window = reader.flag("use_sliding_window", false) ? given : 0;
  const std::int64_t first =
      reader.count_or({"max_window_layers"}, llm_limits::kLayers, model.layer_count());
  if (read_layer_types(reader, model, window)) return;
  for (std::int64_t i = first; i < model.layer_count(); ++i)
    model.layers[static_cast<std::size_t>(i)].window = window;
}

/// Qwen2 has biases on queries, keys and values alone.
void build_qwen2(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.attention.qkv_bias = reader.flag("qkv_bias", true);
  model.attention.output_bias = false;
  read_qwen_windows(reader, model);
}

void build_qwen3(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  model.attention.qk_norm = reader.flag("use_qk_norm", true);
  if (reader.flag("qkv_bias", false)) reader.unsupported("'qkv_bias' is not modelled");
  read_qwen_windows(reader, model);
}

void build_qwen2_moe(FieldReader& reader, LlmConfig& model) {
  build_qwen2(reader, model);
  read_qwen_moe(reader, model);
}

void build_qwen3_moe(FieldReader& reader, LlmConfig& model) {
  build_qwen3(reader, model);
  read_qwen_moe(reader, model);
}

/// MiMo is a Qwen2 with a multi-token-prediction module.
void build_mimo(FieldReader& reader, LlmConfig& model) {
  build_qwen2(reader, model);
  model.attention.qkv_bias = reader.flag("attention_bias", true);
  model.mtp_layers = reader.count_or({"num_nextn_predict_layers"}, llm_limits::kLayers, 0);
}

/// The first Qwen gives the width of gate and up together, and has a bias on queries, keys and
/// values always; `no_bias` is about the others.
void build_qwen1(FieldReader& reader, LlmConfig& model) {
  build_llama(reader, model);
  if (model.mlp.intermediate % 2 != 0) reader.invalid("intermediate_size", "must be even");
  model.mlp.intermediate /= 2;
  model.attention.head_dim =
      reader.size_or({"kv_channels"}, llm_limits::kHeadDim, model.attention.head_dim);
  model.attention.qkv_bias = true;
  model.attention.output_bias = model.mlp.bias = !reader.flag("no_bias", true);
}

const RegisterFamily kQwen1({"qwen"}, build_qwen1);
const RegisterFamily kQwen2({"qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"},
                            build_qwen2);
const RegisterFamily kQwen3({"qwen3", "qwen3_vl_text"}, build_qwen3);
const RegisterFamily kQwen2Moe({"qwen2_moe"}, build_qwen2_moe);
const RegisterFamily kQwen3Moe({"qwen3_moe", "qwen3_vl_moe_text"}, build_qwen3_moe);
const RegisterFamily kMimo({"mimo"}, build_mimo);

}  // namespace

void read_qwen_moe(FieldReader& reader, LlmConfig& model) {
  MoeConfig& moe = model.moe;
  moe.experts = reader.size({"num_experts", "num_local_experts"}, llm_limits::kExperts);
  moe.experts_per_token = read_top_k(reader, moe.experts);
  moe.intermediate = reader.size({"moe_intermediate_size"}, llm_limits::kIntermediate);
  moe.shared_intermediate =
      reader.count_or({"shared_expert_intermediate_size"}, llm_limits::kIntermediate, 0);
  moe.shared_experts = moe.shared_intermediate > 0 ? 1 : 0;
  moe.shared_gate = moe.shared_experts > 0;
  const std::int64_t step = reader.size_or({"decoder_sparse_step"}, llm_limits::kLayers, 1);
  const auto dense = reader.counts_or_empty("mlp_only_layers", llm_limits::kLayers);
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    const bool named_dense = std::ranges::find(dense, i) != dense.end();
    model.layers[static_cast<std::size_t>(i)].moe = (i + 1) % step == 0 && !named_dense;
  }
}

}  // namespace orrery
