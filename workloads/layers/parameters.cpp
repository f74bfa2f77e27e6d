// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "workloads/layers/parts/mixer.h"
#include "workloads/models/encoder_alone.h"

namespace orrery {
namespace {

/// Elements of a part of a layer: of matrices (FLOPs follow from them) and of vectors added or
/// multiplied elementwise.
struct Elements {
  std::int64_t matrices = 0;
  std::int64_t vectors = 0;

  std::int64_t total() const { return matrices + vectors; }
  Elements& operator+=(const Elements& other) {
    matrices += other.matrices;
    vectors += other.vectors;
    return *this;
  }
};

Elements operator*(std::int64_t count, const Elements& e) {
  return {count * e.matrices, count * e.vectors};
}

Elements elements_of(const PartWeights& weights) {
  const PartParameters p = weights.parameters();
  return {p.matrices(), p.total() - p.matrices()};
}

/// Elements of what mixes tokens, not split.
Elements mixer(const LlmConfig& model, const LayerConfig& layer) {
  const Mixer* kind = mixer_of(model, layer);
  if (kind == nullptr) return {};
  return elements_of(kind->weights(model, layer, 1));
}

/// A mixture with `experts` routed ones. Every token meets the whole router.
Elements moe(const LlmConfig& model, const LayerConfig& layer, std::int64_t experts) {
  if (!model.has_moe()) return {};
  const ExpertWeights weights = moe_weights({model, layer, training_rank(1)});
  Elements e = elements_of(weights.whole);
  return e += experts * elements_of(weights.expert);
}

}  // namespace

std::int64_t AttentionConfig::kv_elements_per_token() const {
  if (kind == AttentionKind::kLatent) return kv_lora_rank + qk_rope_head_dim;
  return kv_heads * (head_dim + value_dim());
}

std::size_t LlmConfig::variant_of(const AttentionConfig& other) {
  if (other == attention) return 0;
  const auto known = std::ranges::find(variants, other);
  const auto index = static_cast<std::size_t>(known - variants.begin());
  if (known == variants.end()) variants.push_back(other);
  return index + 1;
}

std::int64_t LlmConfig::encoder_layers() const {
  return std::ranges::count(layers, LayerKind::kEncoder, &LayerConfig::kind);
}

std::int64_t mixture_parameters(const LlmConfig& model) {
  if (model.residual_block > 0) return 2 * model.hidden;
  const std::int64_t streams = model.residual_streams;
  if (streams == 1) return 0;
  const std::int64_t weights = streams * (2 + streams);
  return weights * streams * model.hidden + weights + 3;
}

std::int64_t streams_head_parameters(const LlmConfig& model) {
  if (model.residual_block > 0) return 2 * model.hidden;
  const std::int64_t streams = model.residual_streams;
  return streams == 1 ? 0 : streams * streams * model.hidden + streams + 1;
}

ParameterCount count_parameters(const LlmConfig& model) {
  const std::int64_t norm = model.hidden * (model.norm_bias ? 2 : 1);
  const auto dense = [&model](const LayerConfig& layer) {
    return elements_of(mlp_weights({model, layer, training_rank(1)}));
  };
  const auto routed = [&model](const LayerConfig& layer) {
    return moe(model, layer, model.moe.experts);
  };
  const auto active = [&model](const LayerConfig& layer) {
    return moe(model, layer, model.moe.experts_per_token);
  };

  ParameterCount count;
  count.embedding = (model.vocabulary + model.positions + model.segments) * model.hidden;
  count.head = (model.tied_embeddings ? 0 : model.vocabulary * model.hidden) +
               (model.head_bias ? model.vocabulary : 0) + pooler_parameters(model);
  count.attention_per_layer = mixer(model, {}).total();
  count.mamba_per_layer = mixer(model, {.mixer = MixerKind::kMamba2}).total();
  count.mlp_per_dense_layer = dense({}).total();
  count.moe_per_layer = routed({}).total();
  count.active_moe_per_layer = active({}).total();
  count.norms_per_layer = model.norms_per_layer * norm;
  const std::int64_t mixture = mixture_parameters(model);
  count.final_norm = (model.final_norm ? norm : 0) + (model.has_encoder() ? norm : 0) +
                     streams_head_parameters(model);

  count.total = count.active = count.embedding + count.head + count.final_norm;
  count.vision = model.vision ? tower_parameters(*model.vision, 1).total() : 0;
  count.total += count.vision;
  count.active_matrices = head_adds(model);
  for (const LayerConfig& layer : model.layers) {
    const Elements mixes = mixer(model, layer);
    const Elements feeds = !layer.feeds ? Elements() : layer.moe ? routed(layer) : dense(layer);
    const Elements used = layer.feeds && layer.moe ? active(layer) : feeds;
    const bool crosses = layer.kind == LayerKind::kCross;
    const std::int64_t biases =
        layer.position_biases ? model.relative_positions * model.attention_of(layer).heads : 0;
    const std::int64_t rest = mixes.total() * (crosses ? 2 : 1) + biases +
                              (model.norms_of(layer) + (crosses ? 1 : 0)) * norm + 2 * mixture;
    count.total += rest + feeds.total();
    count.active += rest + used.total();
    count.active_matrices += mixes.matrices * (crosses ? 2 : 1) + used.matrices;
  }
  return count;
}

bool LlmConfig::has(MixerKind mixer) const {
  return std::ranges::find(layers, mixer, &LayerConfig::mixer) != layers.end();
}

bool LlmConfig::has_mlp() const {
  return std::ranges::any_of(layers,
                             [](const LayerConfig& layer) { return layer.feeds && !layer.moe; });
}

}  // namespace orrery
