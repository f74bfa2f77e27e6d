// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V4: compressed attention, hyper-connections, experts in every layer, of which the first
// layers' are chosen by the number of the token. Names of its config.json; `deepseek_ref` is a copy
// that leaves out what the class has.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

/// Ratios that the model's code knows: an indexer where it is 4 (inference/model.py).
constexpr std::int64_t kSparseRatio = 4, kDenseRatio = 128;

/// One ratio a layer; those of modules follow.
void read_compression(FieldReader& reader, LlmConfig& model) {
  CompressionConfig& c = model.attention.compression;
  c.window = reader.size({"sliding_window"}, llm_limits::kTokens);
  c.sparse_ratio = kSparseRatio;
  c.dense_ratio = kDenseRatio;
  c.output_groups = reader.size({"o_groups"}, llm_limits::kHeads);
  c.output_rank = reader.size({"o_lora_rank"}, llm_limits::kHidden);
  reader.require_divides("o_groups", c.output_groups, model.attention.heads, "attention heads");
  const std::vector<std::int64_t> ratios =
      reader.counts_or_empty("compress_ratios", llm_limits::kTokens);
  const auto layers = static_cast<std::size_t>(model.layer_count());
  if (ratios.size() < layers)
    reader.invalid("compress_ratios",
                   fmt::format("expected at least {} entries, got {}", layers, ratios.size()));
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const std::int64_t ratio = ratios[i];
    if (ratio != 0 && ratio != kSparseRatio && ratio != kDenseRatio)
      reader.unsupported(fmt::format("'compress_ratios' of {} are not modelled", ratio));
    if (i < layers)
      model.layers[i].mixer = ratio == 0              ? MixerKind::kWindowedKey
                              : ratio == kSparseRatio ? MixerKind::kCompressedSparse
                                                      : MixerKind::kCompressed;
  }
}

void read_v4_experts(FieldReader& reader, LlmConfig& model) {
  MoeConfig& moe = model.moe;
  moe.experts = reader.size({"n_routed_experts"}, llm_limits::kExperts);
  moe.experts_per_token = read_top_k(reader, moe.experts);
  moe.intermediate = reader.size({"moe_intermediate_size"}, llm_limits::kIntermediate);
  moe.shared_experts = reader.count_or({"n_shared_experts"}, llm_limits::kSharedExperts, 0);
  moe.shared_intermediate = moe.shared_experts * moe.intermediate;
  moe.router_bias = true;  // of layers that choose by scores
  const std::int64_t hashed = reader.count_or({"num_hash_layers"}, model.layer_count(), 0);
  const std::string format = reader.text_or({"expert_dtype"}, "");
  if (!format.empty() && format != "fp4" && format != "fp8")
    reader.unsupported("experts in '" + format + "' are not modelled");
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    LayerConfig& layer = model.layers[static_cast<std::size_t>(i)];
    layer.moe = true;
    layer.hashed = i < hashed;
    if (format == "fp4") layer.feed = StoredFormat::kMxFourBit;
  }
}

void build_deepseek_v4(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  AttentionConfig& a = model.attention;
  a.heads = reader.size({"num_attention_heads"}, llm_limits::kHeads);
  a.kv_heads = reader.size_or({"num_key_value_heads"}, llm_limits::kHeads, 1);
  if (a.kv_heads != 1) reader.unsupported("more than one KV head is not modelled");
  a.head_dim = reader.size({"head_dim"}, llm_limits::kHeadDim);
  a.q_lora_rank = reader.size({"q_lora_rank"}, llm_limits::kHidden);
  a.qk_rope_head_dim = reader.size({"qk_rope_head_dim"}, a.head_dim);
  if (reader.flag("attention_bias", false)) reader.unsupported("biases are not modelled");
  a.indexer.heads = reader.size({"index_n_heads"}, llm_limits::kHeads);
  a.indexer.head_dim = reader.size({"index_head_dim"}, llm_limits::kHeadDim);
  a.indexer.top_k = reader.size({"index_topk"}, llm_limits::kTokens);
  reader.ignore({"compress_rope_theta"});
  read_compression(reader, model);
  read_v4_experts(reader, model);
  model.residual_streams = reader.size_or({"hc_mult"}, llm_limits::kHeads, 1);
  model.sinkhorn_steps = reader.count_or({"hc_sinkhorn_iters"}, llm_limits::kHeads, 0);
  model.tied_embeddings = reader.tied_embeddings(false);
  model.mtp_layers = reader.count_or({"num_nextn_predict_layers"}, llm_limits::kLayers, 0);
  model.module = LayerConfig{.moe = true, .mixer = MixerKind::kWindowedKey};
}

const RegisterFamily kDeepseekV4({"deepseek_v4", "deepseek_ref"}, build_deepseek_v4);

}  // namespace
}  // namespace orrery
