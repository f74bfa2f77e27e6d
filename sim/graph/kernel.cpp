// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/kernel.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery {

double element_bytes(Precision precision) {
  // fp32, tf32, bf16, fp16, fp8, fp8_block, nvfp4, int8
  constexpr std::array<double, 8> kBytes = {4, 4, 2, 2, 1, 1, 0.5, 1};
  return kBytes.at(static_cast<std::size_t>(precision));
}

double weight_bytes(Precision precision, WeightFormat format) {
  constexpr double kIndexBits = 2;  // its place among four (NVIDIA A100 whitepaper)
  const double bits =
      format.bits > 0 ? static_cast<double>(format.bits) : 8 * element_bytes(precision);
  return ((format.sparse ? (bits + kIndexBits) / 2 : bits) + format.scale_bits) / 8;
}

ExpertLoad even_load(double active, double rows, double experts) {
  ExpertLoad load;
  load.active = active;
  load.rows = rows;
  load.experts = experts;
  load.expected = rows / experts;
  // Rows are whole: of 64.1 on average one expert in ten has 65.
  const double least = std::floor(rows / active), more = rows / active - least;
  for (std::size_t i = 0; i < load.blocks.size(); ++i) {
    const double height = ExpertLoad::kHeights[i];
    load.blocks[i] = active * ((1 - more) * std::max(1.0, std::ceil(least / height)) +
                               more * std::ceil((least + 1) / height));
  }
  return load;
}

}  // namespace orrery
