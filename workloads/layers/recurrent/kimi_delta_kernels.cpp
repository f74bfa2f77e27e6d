// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/kimi_delta_kernels.h"

#include <algorithm>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/recurrent/scan_kernels.h"

namespace orrery {
namespace {

constexpr double kDecayBytes = 4;       ///< decays and steps are fp32
constexpr std::int64_t kSubBlock = 16;  ///< tokens of blocks whose diagonal runs on vector lanes
constexpr double kColumnFlops = 8;      ///< softplus, product with A, sum
/// Scales of three gradients, sums of decays' and steps' gradients.
constexpr double kKeyGradientFlops = 16;
constexpr double kInnerFlops = 8;     ///< scales, and sums with what came through states
constexpr double kDiagonalFlops = 4;  ///< difference, product, two multiply-adds of two scores

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

/// Bytes and FLOPs of what the kernels of a chunk read and write.
struct KimiTraffic {
  explicit KimiTraffic(const DeltaShape& s)
      : keys(real(s.tokens() * s.wide_keys()) * s.bytes),
        decays(real(s.tokens() * s.wide_keys()) * kDecayBytes),
        values(real(s.tokens() * s.values()) * s.bytes),
        steps(real(s.tokens() * s.heads) * kDecayBytes),
        squares(real(s.tokens() * s.heads * s.length)),
        states(real(s.chunks() * s.states()) * s.bytes) {}

  double keys, decays, values, steps, squares, states;
};

double kimi_flops(const DeltaShape& s, std::int64_t columns, std::int64_t inside) {
  return 2 * real(s.tokens() * s.heads * columns) * real(inside);
}

/// Gradients of scores of queries, and of values through them.
Kernel kimi_score_gradient(const DeltaShape& s) {
  const KimiTraffic t(s);
  return block_products("delta score gradient",
                        {s.chunks() * s.heads, s.length, s.value_dim, s.length},
                        2 * kimi_flops(s, s.value_dim, s.length),
                        2 * t.values + t.squares * s.bytes, t.values + t.squares * kDecayBytes);
}

/// From the last chunk to the first.
Kernel kimi_state_gradient(const DeltaShape& s) {
  const KimiTraffic t(s);
  Kernel kernel = delta_states(s);
  kernel.name = "delta state gradient";
  kernel.matrix_flops = Flops(3 * kimi_flops(s, s.key_dim, s.value_dim));
  kernel.read = Bytes(3 * t.keys + 2 * t.values + t.decays);
  kernel.written = Bytes(t.states + t.values);
  return kernel;
}

/// Through states, and through keys and values behind triangles.
Kernel kimi_key_gradient(const DeltaShape& s) {
  const KimiTraffic t(s);
  const double columns = real(s.tokens() * s.wide_keys());
  const double flops =
      3 * kimi_flops(s, s.key_dim, s.value_dim) + 2 * kimi_flops(s, s.value_dim, s.length) +
      2 * kimi_flops(s, s.key_dim, s.length) + 2 * kimi_flops(s, s.length, s.length);
  Kernel kernel = block_products(
      "delta key gradient", {s.chunks() * s.heads, s.length, s.key_dim, s.value_dim + s.length},
      flops, 2 * t.keys + 4 * t.values + t.decays + t.steps + t.squares * s.bytes + 2 * t.states,
      3 * t.decays + t.values + t.steps + t.squares * kDecayBytes);
  kernel.vector_flops = Flops(kKeyGradientFlops * columns);
  kernel.exponentials = Flops(2 * columns);
  return kernel;
}

/// Through scores inside of chunks: blocks below the diagonal by products, those on it on vector
/// lanes.
Kernel kimi_inner_gradient(const DeltaShape& s) {
  const KimiTraffic t(s);
  const double columns = real(s.tokens() * s.wide_keys());
  const double diagonal = columns * real(std::min(s.length, kSubBlock));
  Kernel kernel = block_products(
      "delta inner gradient", {s.chunks() * s.heads, s.length, s.key_dim, 2 * s.length},
      4 * 2 * columns * real(s.length) * below_diagonal(s),
      2 * t.keys + 4 * t.decays + 2 * t.steps + 2 * t.squares * kDecayBytes,
      2 * t.keys + t.decays + t.steps);
  kernel.vector_flops = Flops(2 * kDiagonalFlops * diagonal + kInnerFlops * columns);
  kernel.exponentials = Flops(2 * diagonal + 2 * columns);
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

std::vector<Kernel> kimi_again(const DeltaShape& s) {
  return {kimi_decays(s), kimi_chunk_values(s), delta_states(s)};
}

std::vector<Kernel> kimi_backward(const DeltaShape& s) {
  const std::int64_t columns = s.wide_keys();
  // Sums of decays from the end of each chunk, and through what made them.
  Kernel sums =
      block_pass("delta chunk cumsum backward", s.tokens(), columns, {kDecayBytes, kDecayBytes, 1});
  Kernel decays = block_pass("delta decays backward", s.tokens(), columns,
                             {s.bytes + kDecayBytes, s.bytes, 2 * kColumnFlops});
  decays.exponentials = Flops(2 * real(s.tokens() * columns));
  return {kimi_score_gradient(s), kimi_state_gradient(s), kimi_key_gradient(s),
          kimi_inner_gradient(s), std::move(sums),        std::move(decays)};
}

Kernel kimi_update(const DeltaShape& s, double state_bytes) {
  Kernel kernel = state_update(s, state_bytes);
  const double columns = real(s.tokens() * s.wide_keys());
  kernel.read += Bytes((columns - real(s.tokens() * s.heads)) * s.bytes);
  kernel.exponentials = Flops(3 * columns);
  return kernel;
}

}  // namespace orrery
