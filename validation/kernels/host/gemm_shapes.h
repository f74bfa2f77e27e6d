// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::measure {

/// out[m,n] = in[m,k] x weight[k,n]; m counts tokens.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// Rows m of the sweep: decode (1) to a long prefill (16384).
const std::vector<std::int64_t>& gemm_rows();

/// Weights (n, k) of dense layers of real models at tensor-parallel sizes 1 to 8, and powers of
/// two; m is 0; sorted, no two equal.
std::vector<GemmShape> gemm_weights();

/// All rows x weights of at most `most_flops`, in an order that is random but always the same, so
/// that a sweep cut short by time still spreads over everything.
std::vector<GemmShape> gemm_shapes(double most_flops);

/// Shapes of at least 1 TFLOP, whose time depends on whether the chip runs at its boost clock or at
/// the one that its power limit sustains; the most telling first.
std::vector<GemmShape> steady_gemm_shapes();

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
