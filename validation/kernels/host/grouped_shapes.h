// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "host/gemm_shapes.h"

namespace orrery::measure {

/// How the rows of a mixture-of-experts layer fall to its experts.
enum class Distribution { kBalanced, kPowerLaw };

constexpr const char* name_of(Distribution distribution) {
  return distribution == Distribution::kBalanced ? "balanced" : "power_law_1.2";
}

/// One GEMM for every expert: out[rows of e, n] = in[rows of e, k] x weight_e[k, n].
struct GroupedShape {
  int experts = 0;
  std::int64_t rows = 0;  ///< rows of all experts together
  Distribution distribution = Distribution::kBalanced;
  std::int64_t n = 0, k = 0;

  double flops() const { return GemmShape{rows, n, k}.flops(); }
};

/// Rows of each expert; they add up to shape.rows. Balanced: equal but for a remainder of one;
/// power law: the i-th expert's share is proportional to i^-1.2, rounded by largest remainder.
std::vector<std::int64_t> rows_of_experts(const GroupedShape& shape);

/// Layers of real models (both GEMMs of a gated expert) by rows, from decode to prefill.
std::vector<GroupedShape> grouped_shapes();

/// GEMMs that a batch repeats: the two products of attention by head, and squares.
struct BatchedShape {
  GemmShape gemm;
  int batch = 1;
};
std::vector<BatchedShape> batched_shapes();

}  // namespace orrery::measure
