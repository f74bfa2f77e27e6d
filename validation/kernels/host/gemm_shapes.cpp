// SPDX-License-Identifier: Apache-2.0
#include "host/gemm_shapes.h"

#include <algorithm>
#include <tuple>

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

}  // namespace orrery::measure
