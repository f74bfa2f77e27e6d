// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/kimi_delta_kernels.h"

#include <algorithm>

#include "workloads/llm/real.h"
#include "workloads/llm/scan_kernels.h"

namespace orrery {
namespace {

constexpr double kDecayBytes = 4;       ///< decays and steps are fp32
constexpr std::int64_t kSubBlock = 16;  ///< tokens of blocks whose diagonal runs on vector lanes
constexpr double kColumnFlops = 8;      ///< softplus, product with A, sum
constexpr double kDiagonalFlops = 4;    ///< difference, product, two multiply-adds of two scores

/// Share of the square of a chunk in blocks below the diagonal.
double below_diagonal(const DeltaShape& s) {
  const double blocks = real((s.length + kSubBlock - 1) / kSubBlock);
  return (blocks - 1) / (2 * blocks);
}

/// Scores of queries and of keys with the keys before them in a chunk.
Kernel kimi_products(const DeltaShape& s) {
  const double columns = real(s.tokens() * s.wide_keys());
  const double squares = real(s.tokens() * s.heads * s.length);
  const double diagonal = columns * real(std::min(s.length, kSubBlock));
  Kernel kernel = block_products(
      "delta key products", {s.chunks() * s.heads, s.length, s.length, 2 * s.key_dim},
      2 * 2 * columns * real(s.length) * below_diagonal(s),
      columns * (2 * s.bytes + kDecayBytes) + real(s.tokens() * s.heads) * kDecayBytes,
      squares * (kDecayBytes + s.bytes));
  kernel.vector_flops = Flops(kDiagonalFlops * diagonal + 3 * columns);
  kernel.exponentials = Flops(diagonal + 3 * columns);
  return kernel;
}

Kernel kimi_chunk_values(const DeltaShape& s) {
  const double columns = real(s.tokens() * s.wide_keys());
  Kernel kernel = delta_chunk_values(s);
  // Decays of all columns in the place of those of heads; keys times them for the scan.
  kernel.read += Bytes(columns * kDecayBytes - real(s.tokens() * s.heads) * kDecayBytes);
  kernel.written += Bytes(columns * s.bytes);
  kernel.exponentials = Flops(2 * columns);
  return kernel;
}

Kernel kimi_outputs(const DeltaShape& s) {
  const double columns = real(s.tokens() * s.wide_keys());
  const double values = real(s.tokens() * s.values());
  Kernel kernel = block_products(
      "delta outputs", {s.chunks() * s.heads, s.length, s.value_dim, s.key_dim + s.length},
      2 * values * real(s.key_dim + s.length),
      columns * (s.bytes + kDecayBytes) + values * s.bytes +
          real(s.tokens() * s.heads * s.length) * s.bytes + real(s.chunks() * s.states()) * s.bytes,
      values * s.bytes);
  kernel.vector_flops = Flops(columns);
  kernel.exponentials = Flops(columns);
  return kernel;
}

}  // namespace

Kernel kimi_decays(const DeltaShape& s) {
  Kernel kernel =
      block_pass("delta decays", s.tokens(), s.wide_keys(), {s.bytes, kDecayBytes, kColumnFlops});
  kernel.exponentials = Flops(2 * real(s.tokens() * s.wide_keys()));
  const double steps = real(s.tokens() * s.heads);
  kernel.read += Bytes(steps * s.bytes);
  kernel.written += Bytes(steps * kDecayBytes);
  return kernel;
}

std::vector<Kernel> kimi_chunks(const DeltaShape& s) {
  return {kimi_products(s), delta_triangle(s), kimi_chunk_values(s), delta_states(s),
          kimi_outputs(s)};
}

Kernel kimi_update(const DeltaShape& s, double state_bytes) {
  Kernel kernel = state_update(s, state_bytes);
  const double columns = real(s.tokens() * s.wide_keys());
  kernel.read += Bytes((columns - real(s.tokens() * s.heads)) * s.bytes);
  kernel.exponentials = Flops(3 * columns);
  return kernel;
}

}  // namespace orrery
