// SPDX-License-Identifier: Apache-2.0
#include "host/gemm_shapes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "host/sweeps.h"

namespace orrery::measure {
namespace {

/// A decoder with grouped-query attention and a gated feed-forward network.
struct Decoder {
  std::int64_t hidden, query, key_value, ffn;  ///< widths; key_value of keys (or of values) alone
};

/// Column-parallel weights are split in n, row-parallel ones in k (Shoeybi et al., Megatron-LM,
/// arXiv 1909.08053, section 3).
void add_decoder(std::vector<GemmShape>& weights, const Decoder& model, std::int64_t parallel) {
  weights.push_back({0, (model.query + 2 * model.key_value) / parallel, model.hidden});
  weights.push_back({0, model.hidden, model.query / parallel});
  weights.push_back({0, 2 * model.ffn / parallel, model.hidden});
  weights.push_back({0, model.hidden, model.ffn / parallel});
}

bool by_weight(const GemmShape& a, const GemmShape& b) {
  return std::tie(a.n, a.k) < std::tie(b.n, b.k);
}

constexpr std::uint64_t kGroupedOrder = 1423;

/// What part of the rows each expert takes.
std::vector<double> shares(const GroupedShape& shape) {
  std::vector<double> result;
  for (int expert = 1; expert <= shape.experts; ++expert) {
    const bool balanced = shape.distribution == Distribution::kBalanced;
    result.push_back(balanced ? 1.0 : std::pow(expert, -1.2));
  }
  const double sum = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& share : result) share /= sum;
  return result;
}

}  // namespace

const std::vector<std::int64_t>& gemm_rows() {
  static const std::vector<std::int64_t> rows = {1,    2,    4,    8,    16,   32,   48,    64,
                                                 96,   128,  192,  256,  384,  512,  768,   1024,
                                                 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384};
  return rows;
}

std::vector<GemmShape> gemm_weights() {
  const std::vector<Decoder> decoders = {
      {4096, 4096, 1024, 14336},    // Llama 3 8B (Grattafiori et al., arXiv 2407.21783, table 3)
      {8192, 8192, 1024, 28672},    // Llama 3 70B
      {16384, 16384, 1024, 53248},  // Llama 3 405B
      {4096, 4096, 1024, 12288},    // Qwen3 8B (its published config.json)
      {5120, 8192, 1024, 25600}};   // Qwen3 32B
  std::vector<GemmShape> weights = {
      // DeepSeek-V3 (arXiv 2412.19437, section 4.2): hidden 7168, low ranks 1536 and 512 + 64, 128
      // heads of 128 + 64, dense feed-forward 18432, experts of 2048. In order: down-projections of
      // queries and latents together, queries, keys and values, output, dense up and down, expert
      // up and down; up is gate and up in one.
      {0, 2112, 7168},  {0, 24576, 1536}, {0, 32768, 512}, {0, 7168, 16384},
      {0, 36864, 7168}, {0, 7168, 18432}, {0, 4096, 7168}, {0, 7168, 2048}};
  for (const Decoder& model : decoders) {
    for (const std::int64_t parallel : {1, 2, 4, 8}) add_decoder(weights, model, parallel);
  }
  for (std::int64_t n = 256; n <= 16384; n *= 2) {
    for (std::int64_t k = 256; k <= 16384; k *= 2) weights.push_back({0, n, k});
  }
  std::sort(weights.begin(), weights.end(), by_weight);
  weights.erase(std::unique(weights.begin(), weights.end()), weights.end());
  return weights;
}

std::vector<GemmShape> gemm_shapes(double most_flops) {
  std::vector<GemmShape> shapes;
  for (const GemmShape& weight : gemm_weights()) {
    for (const std::int64_t m : gemm_rows()) {
      const GemmShape shape{m, weight.n, weight.k};
      if (shape.flops() <= most_flops) shapes.push_back(shape);
    }
  }
  shuffle(shapes, 4711);
  return shapes;
}

std::vector<GemmShape> steady_gemm_shapes() {
  return {{8192, 8192, 8192},  {16384, 8192, 8192},  {8192, 57344, 8192},
          {8192, 28672, 4096}, {4096, 16384, 16384}, {16384, 10240, 8192}};
}

std::vector<std::int64_t> rows_of_experts(const GroupedShape& shape) {
  std::vector<std::int64_t> rows;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t left = shape.rows;
  for (const double share : shares(shape)) {
    const double exact = share * static_cast<double>(shape.rows);
    const auto whole = static_cast<std::int64_t>(exact);
    remainders.emplace_back(exact - static_cast<double>(whole), rows.size());
    rows.push_back(whole);
    left -= whole;
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; left > 0; ++i, --left) ++rows[remainders[i].second];
  return rows;
}

std::vector<GroupedShape> grouped_shapes() {
  struct Layer {
    int experts;
    std::int64_t hidden, ffn;
  };
  const std::vector<Layer> layers = {
      {8, 4096, 14336},  // Mixtral 8x7B (Jiang et al., arXiv 2401.04088, table 1)
      {128, 2048, 768},  // Qwen3 30B-A3B (its published config.json)
      {32, 7168, 2048},  // DeepSeek-V3: 256 experts over 8 GPUs (arXiv 2412.19437, section 4.2)
      {8, 7168, 2048}};  // the same over 32
  std::vector<GroupedShape> shapes;
  for (const Layer& layer : layers) {
    for (std::int64_t rows = 64; rows <= 32768; rows *= 2) {
      for (const Distribution distribution : {Distribution::kBalanced, Distribution::kPowerLaw}) {
        shapes.push_back({layer.experts, rows, distribution, 2 * layer.ffn, layer.hidden});
        shapes.push_back({layer.experts, rows, distribution, layer.hidden, layer.ffn});
      }
    }
  }
  shuffle(shapes, kGroupedOrder);
  return shapes;
}

std::vector<BatchedShape> batched_shapes() {
  std::vector<BatchedShape> shapes;
  for (const int batch : {1, 2, 4, 8, 16, 32, 64}) {
    for (const std::int64_t length : {128, 512, 2048, 4096}) {
      for (const std::int64_t head_dim : {64, 128}) {
        shapes.push_back({{length, length, head_dim}, batch});  // queries x keys
        shapes.push_back({{length, head_dim, length}, batch});  // weights x values
        shapes.push_back({{16, length, head_dim}, batch});      // decode: 16 queries share the keys
        shapes.push_back({{16, head_dim, length}, batch});
      }
    }
    for (std::int64_t size = 256; size <= 2048; size *= 2) {
      shapes.push_back({{size, size, size}, batch});
    }
  }
  shuffle(shapes, kGroupedOrder);
  return shapes;
}

}  // namespace orrery::measure
