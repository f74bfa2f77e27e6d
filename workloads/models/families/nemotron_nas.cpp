// SPDX-License-Identifier: Apache-2.0
// Nemotron-NAS (Puzzle, arXiv 2411.19146): layers of a Llama of which a search has left out
// attention or MLP, or changed their sizes, one by one. Names of configuration_decilm.py and
// block_config.py in nvidia/Llama-3_3-Nemotron-Super-49B-v1.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/models/families/family.h"

namespace orrery {
namespace {

constexpr double kMostMultiple = 64;

void refuse_replaced(FieldReader& half) {
  if (half.flag("replace_with_linear", false))
    half.unsupported("a product in the place of a part of a layer ('replace_with_linear')");
  if (half.has("sparsify")) half.unsupported("sparse parts of layers ('sparsify')");
}

/// The attention of a layer; none where it was left out.
std::optional<AttentionConfig> read_block_attention(FieldReader& half, const LlmConfig& model,
                                                    LayerConfig& layer) {
  refuse_replaced(half);
  if (half.flag("no_op", false)) {
    layer.mixer = MixerKind::kNone;
    return std::nullopt;
  }
  layer.window = half.count_or({"window_length"}, llm_limits::kTokens, 0);
  if (half.count_or({"num_sink_tokens"}, llm_limits::kTokens, 0) > 0)
    half.unsupported("tokens that a window keeps seeing ('num_sink_tokens')");
  AttentionConfig own = model.attention;
  const std::int64_t shared = half.size({"n_heads_in_group"}, own.heads);
  half.require_divides("n_heads_in_group", shared, own.heads, "attention heads");
  own.kv_heads = own.heads / shared;
  return own;
}

/// Two thirds of a multiple of the width, in steps of 256: a gated MLP of as many elements as a
/// plain one of the multiple.
void read_block_mlp(FieldReader& half, const LlmConfig& model, LayerConfig& layer) {
  constexpr std::int64_t kStep = 256;
  refuse_replaced(half);
  layer.feeds = !half.flag("no_op", false);
  if (!layer.feeds) return;
  const double multiple = half.number({"ffn_mult"}, kMostMultiple);
  const auto width =
      static_cast<std::int64_t>(std::floor(2 * multiple * static_cast<double>(model.hidden) / 3));
  layer.intermediate = std::max<std::int64_t>(1, (width + kStep - 1) / kStep) * kStep;
}

void read_blocks(FieldReader& reader, LlmConfig& model) {
  std::vector<FieldReader> blocks = reader.inner("block_configs");
  reader.require_entries("block_configs", blocks.size(), model.layers.size());
  std::vector<LayerConfig> layers;
  std::vector<std::optional<AttentionConfig>> own;
  layers.reserve(blocks.size());
  own.reserve(blocks.size());
  for (FieldReader& block : blocks) {
    LayerConfig layer;
    std::vector<FieldReader> attention = block.inner("attention"), mlp = block.inner("ffn");
    if (attention.size() != 1) block.invalid("attention", "expected an object");
    if (mlp.size() != 1) block.invalid("ffn", "expected an object");
    const auto mixes = read_block_attention(attention.front(), model, layer);
    read_block_mlp(mlp.front(), model, layer);
    if (!mixes && !layer.feeds) continue;
    layers.push_back(layer);
    own.push_back(mixes);
  }
  if (layers.empty()) reader.invalid("block_configs", "leaves no layer");
  const auto first = std::ranges::find_if(own, [](const auto& a) { return a.has_value(); });
  if (first != own.end()) model.attention = **first;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (own[i]) layers[i].variant = model.variant_of(*own[i]);
  model.layers = std::move(layers);
}

void build_nemotron_nas(FieldReader& reader, LlmConfig& model) {
  read_sizes(reader, model);
  AttentionConfig& a = model.attention;
  a.heads = reader.size({"num_attention_heads"}, llm_limits::kHeads);
  reader.require_divides_width("num_attention_heads", a.heads, model.hidden);
  a.head_dim = reader.size_or({"head_dim"}, llm_limits::kHeadDim, model.hidden / a.heads);
  a.qkv_bias = a.output_bias = reader.flag("attention_bias", false);
  a.kv_heads = a.heads;
  model.mlp.bias = reader.flag("mlp_bias", false);
  model.tied_embeddings = reader.tied_embeddings(false);
  read_blocks(reader, model);
}

const RegisterFamily kNemotronNas({"nemotron-nas"}, build_nemotron_nas);

}  // namespace
}  // namespace orrery
