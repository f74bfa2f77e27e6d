// SPDX-License-Identifier: Apache-2.0
#include "host/grouped_shapes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "host/sweeps.h"

namespace orrery::measure {
namespace {

constexpr double kExponent = 1.2;

constexpr std::uint64_t kOrder = 1423;

std::vector<double> shares(const GroupedShape& shape) {
  std::vector<double> result;
  for (int expert = 1; expert <= shape.experts; ++expert) {
    const bool balanced = shape.distribution == Distribution::kBalanced;
    result.push_back(balanced ? 1.0 : std::pow(expert, -kExponent));
  }
  const double sum = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& share : result) share /= sum;
  return result;
}

}  // namespace

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
  shuffle(shapes, kOrder);
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
  shuffle(shapes, kOrder);
  return shapes;
}

}  // namespace orrery::measure
