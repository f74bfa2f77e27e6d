// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/delta_net_kernels.h"

#include <algorithm>

#include "workloads/base/real.h"
#include "workloads/layers/recurrent/scan_kernels.h"

namespace orrery {
namespace {

constexpr double kGateBytes = 4;       ///< decays and steps are fp32
constexpr std::int64_t kChunk = 64;    ///< tokens of a chunk in flash-linear-attention
constexpr std::int64_t kBlock = 16;    ///< solve_tril.py inverts blocks of 16, then their products
constexpr std::int64_t kColumns = 64;  ///< columns of values of a thread block of the scan
constexpr double kUpdateFlops = 7;     ///< decay; k S, sum; outer product, sum; q S, sum
constexpr double kPairFlops = 4;       ///< difference, exponential, product, choice
constexpr double kGateFlops = 8;       ///< softplus, product with A; sigmoid

/// Bytes of what kernels read and write, of all tokens of a rank.
struct DeltaTraffic {
  explicit DeltaTraffic(const DeltaShape& s)
      : keys(real(s.tokens() * s.product_keys) * s.bytes),
        wide(real(s.tokens() * s.wide_keys()) * s.bytes),
        values(real(s.tokens() * s.values()) * s.bytes),
        gates(real(s.tokens() * s.heads) * kGateBytes),
        squares(real(s.tokens() * s.heads * s.length)),
        states(real(s.chunks() * s.states()) * s.bytes) {}

  double keys;     ///< bytes of queries, or of keys
  double wide;     ///< bytes of what has columns of a key for each value head
  double values;   ///< bytes of values, of outputs or of their gradients
  double gates;    ///< bytes of decays, or of steps
  double squares;  ///< elements of products of keys inside of chunks
  double states;   ///< bytes of the states of all chunks
};

/// FLOPs of a product with `inside` elements for each token and each of `columns` of a head.
double delta_flops(const DeltaShape& s, std::int64_t columns, std::int64_t inside) {
  return 2 * real(s.tokens() * s.heads * columns) * real(inside);
}

/// With decays between all tokens of a chunk, by head: kernels mask squares that they make whole.
Kernel with_pairs(Kernel kernel, const DeltaShape& s) {
  const double pairs = real(s.tokens() * s.heads * s.length);
  kernel.vector_flops += Flops(kPairFlops * pairs);
  kernel.exponentials = Flops(pairs);
  return kernel;
}

/// A scan over the chunks of each sequence: a thread block for each head and kColumns of values.
Kernel chunk_scan(const char* name, const DeltaShape& s, double flops, double read,
                  double written) {
  return block_products(
      name, {s.sequences * s.heads, std::min(s.value_dim, kColumns), s.value_dim, s.query}, flops,
      read, written);
}

}  // namespace

DeltaShape delta_shape(const DeltaNetConfig& net, int tp, std::int64_t sequences,
                       std::int64_t query, double bytes) {
  DeltaShape s;
  s.sequences = sequences;
  s.query = query;
  s.length = std::min(kChunk, query);
  s.key_heads = net.key_heads / tp;
  s.heads = net.value_heads / tp;
  s.key_dim = net.key_dim;
  s.value_dim = net.value_dim;
  s.product_keys = s.keys();
  s.bytes = bytes;
  return s;
}

SequenceCache delta_cache(const DeltaNetConfig& net, int tp) {
  const double window = 2 * real(net.conv_channels() * (net.conv_kernel - 1));
  return {0, (real(net.states()) * kDeltaStateBytes + window) / tp};
}

void keep_states(Kernel& scan, const DeltaShape& s, const AttentionPart& part) {
  const Bytes states(real(s.sequences * s.states()) * kDeltaStateBytes);
  scan.written += states;
  if (part.context > part.query) scan.read += states;
}

Kernel conv_forward(const DeltaShape& s, std::int64_t taps) {
  return block_pass("delta convolution", s.tokens(), s.channels(),
                    {s.bytes, s.bytes, convolution_flops(taps)});
}

Kernel conv_backward(const DeltaShape& s, std::int64_t taps) {
  return scan_pass("delta convolution backward", s.tokens(), s.channels(),
                   {2 * s.bytes, s.bytes, 6 * real(taps) + 2 * vector_cost::kSilu});
}

Kernel delta_gates(const DeltaShape& s) {
  return block_pass("delta gates", s.tokens(), s.heads, {2 * s.bytes, 2 * kGateBytes, kGateFlops});
}

Kernel delta_gates_backward(const DeltaShape& s) {
  return block_pass("delta gates backward", s.tokens(), s.heads,
                    {2 * s.bytes + 2 * kGateBytes, 2 * s.bytes, 2 * kGateFlops});
}

Kernel unit_keys(const DeltaShape& s) {
  return block_pass("delta key norm", s.tokens(), 2 * s.keys(),
                    {s.bytes, s.bytes, vector_cost::kRmsNorm});
}

Kernel unit_keys_backward(const DeltaShape& s) {
  return block_pass("delta key norm backward", s.tokens(), 2 * s.keys(),
                    {2 * s.bytes, s.bytes, vector_cost::kNormBackward});
}

Kernel delta_triangle(const DeltaShape& s) {
  const std::int64_t blocks = (s.length + kBlock - 1) / kBlock;
  std::int64_t products = blocks;
  for (std::int64_t d = 1; d < blocks; ++d) products += (d + 1) * (blocks - d);
  Kernel kernel =
      block_pass("delta triangle solve", s.tokens() * s.heads, s.length, {kGateBytes, s.bytes, 0});
  kernel.vector_flops = Flops(real(s.chunks() * s.heads * products) * 2 * kBlock * kBlock * kBlock);
  return kernel;
}

std::vector<Kernel> delta_triangles(const DeltaShape& s) {
  const DeltaTraffic t(s);
  std::vector<Kernel> all;
  all.push_back(block_pass("delta chunk cumsum", s.tokens(), s.heads, {kGateBytes, kGateBytes, 1}));
  all.push_back(with_pairs(
      block_products("delta key products", {s.chunks() * s.heads, s.length, s.length, s.key_dim},
                     delta_flops(s, s.key_dim, s.length), t.keys + 2 * t.gates,
                     t.squares * kGateBytes),
      s));
  all.push_back(delta_triangle(s));
  return all;
}

Kernel delta_chunk_values(const DeltaShape& s) {
  const DeltaTraffic t(s);
  const std::int64_t columns = s.key_dim + s.value_dim;
  Kernel kernel =
      block_products("delta chunk values", {s.chunks() * s.heads, s.length, columns, s.length},
                     delta_flops(s, columns, s.length),
                     t.keys + t.values + 2 * t.gates + t.squares * s.bytes, t.wide + t.values);
  kernel.vector_flops = Flops(2 * real(s.tokens() * s.heads * columns));
  kernel.exponentials = Flops(real(s.tokens() * s.heads));
  return kernel;
}

Kernel delta_states(const DeltaShape& s) {
  const DeltaTraffic t(s);
  Kernel kernel = chunk_scan("delta states", s, 2 * delta_flops(s, s.key_dim, s.value_dim),
                             t.keys + t.wide + t.values + t.gates, t.states + t.values);
  kernel.vector_flops = Flops(real(s.chunks() * s.states()) + real(s.tokens() * s.values()));
  kernel.exponentials = Flops(real(s.tokens() * s.heads));
  return kernel;
}

Kernel delta_outputs(const DeltaShape& s) {
  const DeltaTraffic t(s);
  const double flops =
      delta_flops(s, s.key_dim, s.value_dim) + delta_flops(s, s.key_dim + s.value_dim, s.length);
  return with_pairs(
      block_products("delta outputs",
                     {s.chunks() * s.heads, s.length, s.value_dim, s.key_dim + s.length}, flops,
                     2 * t.keys + t.values + t.gates + t.states, t.values),
      s);
}

std::vector<Kernel> delta_chunks(const DeltaShape& s) {
  std::vector<Kernel> all = delta_triangles(s);
  all.push_back(delta_chunk_values(s));
  all.push_back(delta_states(s));
  all.push_back(delta_outputs(s));
  return all;
}

Kernel fused_delta_rule(const DeltaShape& s) {
  const DeltaTraffic t(s);
  // The state with queries and keys, and keys with what it lacks; keys and queries with keys, the
  // triangle with keys and values, scores with values.
  const double flops = 3 * delta_flops(s, s.key_dim, s.value_dim) +
                       3 * delta_flops(s, s.key_dim, s.length) +
                       2 * delta_flops(s, s.value_dim, s.length);
  Kernel kernel =
      scan_products("delta fused rule", {s.sequences * s.heads, s.length, s.value_dim, s.query},
                    flops, 2 * t.keys + t.values + 2 * t.gates, t.values);
  kernel.tile = {kChunk, 0};
  return with_pairs(std::move(kernel), s);
}

std::vector<Kernel> delta_backward(const DeltaShape& s) {
  const DeltaTraffic t(s);
  const std::int64_t all_chunks = s.chunks() * s.heads;
  const double states = delta_flops(s, s.key_dim, s.value_dim);
  const double of_keys = delta_flops(s, s.key_dim, s.length);
  const double of_values = delta_flops(s, s.value_dim, s.length);
  const double squares = delta_flops(s, s.length, s.length);
  std::vector<Kernel> all;
  // chunk_bwd_dv_local: k q^T, and that times the gradient of outputs.
  all.push_back(with_pairs(
      block_products("delta value gradient", {all_chunks, s.length, s.value_dim, s.length},
                     of_keys + of_values, 2 * t.keys + t.values + t.gates, t.values),
      s));
  // chunk_gated_delta_rule_bwd_dhu: from the last chunk to the first.
  all.push_back(chunk_scan("delta state gradient", s, 3 * states,
                           2 * t.keys + t.wide + 2 * t.values + t.gates, t.states + t.values));
  // chunk_bwd_dqkwg: through the states, and through q k^T of the chunk.
  all.push_back(with_pairs(
      block_products(
          "delta key gradient", {all_chunks, s.length, s.key_dim, s.value_dim + s.length},
          3 * states + of_values + 3 * of_keys,
          2 * t.keys + t.wide + 3 * t.values + 2 * t.states + t.gates, 3 * t.wide + t.gates),
      s));
  // prepare_wy_repr_bwd: through the inverse of the triangle, and k k^T.
  all.push_back(
      with_pairs(block_products("delta triangle gradient",
                                {all_chunks, s.length, s.key_dim + s.value_dim, s.length},
                                5 * of_keys + 2 * of_values + 2 * squares,
                                t.keys + 2 * t.values + t.wide + 2 * t.gates + t.squares * s.bytes,
                                t.wide + t.values + 2 * t.gates),
                 s));
  // Sums of both gradients of keys, and of decays from the end of each chunk.
  all.push_back(
      block_pass("delta gradient addition", s.tokens(), s.wide_keys(), {2 * s.bytes, s.bytes, 1}));
  all.push_back(block_pass("delta chunk cumsum backward", s.tokens(), s.heads,
                           {2 * kGateBytes, kGateBytes, 2}));
  return all;
}

Kernel gated_norm(const DeltaShape& s) {
  return block_pass("delta gated norm", s.tokens(), s.values(),
                    {2 * s.bytes, s.bytes, vector_cost::kRmsNorm + vector_cost::kSilu + 1});
}

Kernel gated_norm_backward(const DeltaShape& s) {
  return block_pass(
      "delta gated norm backward", s.tokens(), s.values(),
      {3 * s.bytes, 2 * s.bytes, vector_cost::kNormBackward + 2 * vector_cost::kSilu});
}

Kernel conv_update(const DeltaShape& s, std::int64_t taps) {
  Kernel kernel = window_pass("delta convolution update", s.tokens(), s.channels(),
                              {s.bytes, s.bytes, convolution_flops(taps)});
  const Bytes window(real(s.sequences * s.channels() * (taps - 1)) * s.bytes);
  kernel.read += window;
  kernel.written += window;
  return kernel;
}

Kernel state_update(const DeltaShape& s, double state_bytes) {
  Kernel kernel =
      block_pass("delta state update", s.tokens(), s.states(), {0, state_bytes, kUpdateFlops});
  const double inputs = real(s.tokens()) * s.bytes;
  kernel.exponentials = Flops(real(s.tokens() * s.heads) * 3);
  kernel.read = Bytes(real(s.sequences * s.states()) * state_bytes +
                      inputs * real(s.channels() + 2 * s.heads));
  kernel.written += Bytes(inputs * real(s.values()));
  return kernel;
}

}  // namespace orrery
