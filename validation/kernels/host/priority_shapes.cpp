// SPDX-License-Identifier: Apache-2.0
#include "host/priority_shapes.h"

#include <utility>

#include "host/sweeps.h"

namespace orrery::measure {
namespace {

constexpr std::uint64_t kPriorityOrder = 5081;
constexpr std::int64_t kMostHeadRows = 512;
constexpr int kPageTokens = 64;

/// Latent attention of DeepSeek-V3 (arXiv 2412.19437, section 4.2): heads, dimensions of their keys
/// (or values) and of the rotary part of keys, of the latent vector, and of that of queries.
struct Latent {
  static constexpr std::int64_t kHeads = 128, kHeadDim = 128, kRotary = 64, kWidth = 512,
                                kQuery = 1536;
};

/// `shapes` of one model, shuffled, behind those of the models before.
template <class Shape>
void append(std::vector<Shape>& all, std::vector<Shape> shapes) {
  shuffle(shapes, kPriorityOrder);
  all.insert(all.end(), shapes.begin(), shapes.end());
}

std::vector<GemmShape> latent_weights(std::int64_t hidden) {
  return {{0, Latent::kQuery + Latent::kWidth + Latent::kRotary, hidden},
          {0, Latent::kHeads * (Latent::kHeadDim + Latent::kRotary), Latent::kQuery},
          {0, Latent::kHeads * 2 * Latent::kHeadDim, Latent::kWidth},
          {0, hidden, Latent::kHeads * Latent::kHeadDim}};
}

std::vector<GemmShape> gemm_shapes_of(const PriorityModel& model, double most_flops) {
  std::vector<GemmShape> shapes;
  const auto add = [&](const GemmShape& shape) {
    if (shape.flops() <= most_flops) shapes.push_back(shape);
  };
  for (const std::int64_t m : gemm_rows()) {
    for (const GemmShape& weight : layer_weights(model)) add({m, weight.n, weight.k});
    if (model.vocabulary > 0 && m <= kMostHeadRows) {
      add({m, model.vocabulary / model.parallel, model.hidden});
    }
  }
  return shapes;
}

std::vector<GroupedShape> grouped_shapes_of(const PriorityModel& model) {
  const ExpertLayer& layer = model.experts;
  std::vector<GroupedShape> shapes;
  for (std::int64_t tokens = 1; layer.experts > 0 && tokens <= 8192; tokens *= 2) {
    for (const Distribution distribution : {Distribution::kBalanced, Distribution::kPowerLaw}) {
      const std::int64_t rows = tokens * layer.top_k;
      shapes.push_back({layer.experts, rows, distribution, 2 * layer.ffn, model.hidden});
      shapes.push_back({layer.experts, rows, distribution, model.hidden, layer.ffn});
    }
  }
  return shapes;
}

}  // namespace

const std::vector<PriorityModel>& priority_models() {
  // Published config.json of each model, as in configs/models/hf; DeepSeek-V3: a layer of experts.
  static const std::vector<PriorityModel> models = {{.name = "llama_3_1_8b",
                                                     .hidden = 4096,
                                                     .ffn = 14336,
                                                     .vocabulary = 128256,
                                                     .heads = {32, 8, 128}},
                                                    {.name = "llama_3_1_70b",
                                                     .parallel = 8,
                                                     .hidden = 8192,
                                                     .ffn = 28672,
                                                     .vocabulary = 128256,
                                                     .heads = {64, 8, 128}},
                                                    {.name = "qwen3_30b_a3b",
                                                     .hidden = 2048,
                                                     .vocabulary = 151936,
                                                     .heads = {32, 4, 128},
                                                     .experts = {128, 8, 768}},
                                                    {.name = "gpt_oss_20b",
                                                     .hidden = 2880,
                                                     .vocabulary = 201088,
                                                     .heads = {64, 8, 64},
                                                     .experts = {32, 4, 2880}},
                                                    {.name = "deepseek_v3",
                                                     .hidden = 7168,
                                                     .ffn = 2048,
                                                     .experts = {256, 8, 2048},
                                                     .latent = latent_weights(7168)}};
  return models;
}

std::vector<GemmShape> layer_weights(const PriorityModel& model) {
  std::vector<GemmShape> weights = model.latent;
  const AttentionHeads heads = model.rank_heads();
  if (heads.heads > 0) {
    const int rows = heads.heads + 2 * heads.kv_heads;
    weights.push_back({0, std::int64_t{rows} * heads.head_dim, model.hidden});
    weights.push_back({0, model.hidden, std::int64_t{heads.heads} * heads.head_dim});
  }
  if (model.ffn > 0) {
    weights.push_back({0, 2 * model.ffn / model.parallel, model.hidden});
    weights.push_back({0, model.hidden, model.ffn / model.parallel});
  }
  if (model.experts.experts > 0) weights.push_back({0, model.experts.experts, model.hidden});
  return weights;
}

std::vector<GemmShape> priority_gemm_shapes(double most_flops) {
  std::vector<GemmShape> all;
  for (const PriorityModel& model : priority_models()) {
    append(all, gemm_shapes_of(model, most_flops));
  }
  return all;
}

std::vector<GemmShape> priority_steady_shapes() {
  const PriorityModel& model = priority_models().front();
  return {{64, 2 * model.ffn, model.hidden}, {8192, 2 * model.ffn, model.hidden}};
}

std::vector<GroupedShape> priority_grouped_shapes() {
  std::vector<GroupedShape> all;
  for (const PriorityModel& model : priority_models()) append(all, grouped_shapes_of(model));
  return all;
}

std::vector<BatchedShape> priority_batched_shapes() {
  std::vector<BatchedShape> shapes;
  for (const std::int64_t tokens : gemm_rows()) {
    if (tokens > kMostHeadRows) break;
    shapes.push_back({{tokens, Latent::kWidth, Latent::kHeadDim}, Latent::kHeads});
    shapes.push_back({{tokens, Latent::kHeadDim, Latent::kWidth}, Latent::kHeads});
  }
  shuffle(shapes, kPriorityOrder);
  return shapes;
}

std::vector<PrefillShape> priority_prefill_shapes(double most_flops) {
  std::vector<PrefillShape> all;
  for (const PriorityModel& model : priority_models()) {
    if (model.heads.heads > 0) append(all, prefill_shapes_of(model.rank_heads(), most_flops));
  }
  return all;
}

std::vector<DecodeShape> priority_decode_shapes(double most_bytes) {
  std::vector<DecodeShape> all;
  for (const PriorityModel& model : priority_models()) {
    if (model.heads.heads == 0) continue;
    std::vector<DecodeShape> shapes = decode_shapes_of(model.rank_heads(), most_bytes);
    std::erase_if(shapes, [](const DecodeShape& shape) { return shape.page_size == 0; });
    append(all, std::move(shapes));
  }
  return all;
}

PrefillShape sustained_prefill() { return {4, 8192, 0, priority_models().front().rank_heads()}; }

DecodeShape sustained_decode() {
  return {64, 8192, priority_models().front().rank_heads(), kPageTokens};
}

}  // namespace orrery::measure
