// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/mamba_kernels.h"

#include <algorithm>

#include "workloads/base/real.h"
#include "workloads/layers/recurrent/scan_kernels.h"

namespace orrery {
namespace {

constexpr double kWideBytes = 4;    ///< states, products of C and B, steps and decays are fp32
constexpr double kStateFlops = 6;   ///< decay, dt B x, sum; C times it, sum; dt B once a column
constexpr double kSoftplus = 4;     ///< exponential, sum, logarithm, choice
constexpr double kMaskedFlops = 4;  ///< difference, exponential, product, choice

/// Bytes of what kernels read and write, of all tokens of a rank.
struct Traffic {
  explicit Traffic(const ScanShape& s)
      : x(real(s.tokens() * s.inner()) * s.bytes),
        b(real(s.tokens() * s.groups * s.state) * s.bytes),
        steps(real(s.tokens() * s.heads) * kWideBytes),
        states(real(s.chunks() * s.states())),
        squares(real(s.tokens() * s.groups * s.length) * kWideBytes) {}

  double x;        ///< bytes of x, of outputs or of their gradients
  double b;        ///< bytes of B, or of C
  double steps;    ///< bytes of steps, or of sums of decays
  double states;   ///< elements of the states of all chunks
  double squares;  ///< bytes of products of C and B inside of chunks
};

/// FLOPs of a product over all heads with `inside` elements for each token and element of a head.
double head_flops(const ScanShape& s, double inside) {
  return 2 * real(s.tokens() * s.inner()) * inside;
}

/// With decays between the tokens of a chunk, by head.
Kernel with_decays(Kernel kernel, const ScanShape& s) {
  const double pairs = real(s.tokens() * s.heads) * s.earlier();
  kernel.vector_flops = Flops(kMaskedFlops * pairs);
  kernel.exponentials = Flops(pairs);
  return kernel;
}

}  // namespace

MambaConfig on_rank(MambaConfig mamba, int tp) {
  mamba.heads /= tp;
  if (mamba.groups > 1) mamba.groups /= tp;
  return mamba;
}

ScanShape scan_shape(const MambaConfig& mamba, int tp, std::int64_t sequences, std::int64_t query,
                     double bytes) {
  const MambaConfig own = on_rank(mamba, tp);
  return {sequences, query, std::min(own.chunk, query), own.heads, own.groups, own.head_dim,
          own.state, bytes};
}

Kernel conv_forward(const ScanShape& s, std::int64_t taps) {
  return block_pass("mamba convolution", s.tokens(), s.channels(),
                    {s.bytes, s.bytes, convolution_flops(taps)});
}

Kernel conv_backward(const ScanShape& s, std::int64_t taps) {
  return scan_pass("mamba convolution backward", s.tokens(), s.channels(),
                   {2 * s.bytes, s.bytes, 6 * real(taps) + 2 * vector_cost::kSilu});
}

std::vector<Kernel> scan_states(const ScanShape& s) {
  const Traffic t(s);
  const std::int64_t heads = s.chunks() * s.heads, groups = s.chunks() * s.groups;
  std::vector<Kernel> all;
  all.push_back(scan_pass("mamba chunk cumsum", s.tokens(), s.heads,
                          {s.bytes, 2 * kWideBytes, kSoftplus + 2}));
  all.push_back(scan_products("mamba chunk state", {heads, s.head_dim, s.state, s.length},
                              head_flops(s, real(s.state)), t.x + t.b + 2 * t.steps,
                              t.states * kWideBytes));
  all.back().vector_flops = Flops(3 * real(s.tokens() * s.heads * s.state));
  all.push_back(scan_pass("mamba state passing", s.chunks(), s.states(), {kWideBytes, s.bytes, 2}));
  all.push_back(scan_products("mamba chunk products", {groups, s.length, s.length, s.state},
                              2 * real(s.tokens() * s.groups * s.length * s.state), 2 * t.b,
                              t.squares));
  return all;
}

Kernel scan_outputs(const ScanShape& s) {
  const Traffic t(s);
  const double read = t.x + t.b + 2 * t.steps + t.squares + t.states * s.bytes;
  return with_decays(scan_products("mamba chunk scan",
                                   {s.chunks() * s.heads, s.length, s.head_dim, s.state + s.length},
                                   head_flops(s, real(s.state) + s.earlier()), read, t.x),
                     s);
}

Kernel gated_scan_outputs(const ScanShape& s) {
  Kernel kernel = scan_outputs(s);
  const double x = Traffic(s).x;
  kernel.read += Bytes(x);
  kernel.written += Bytes(x);
  kernel.vector_flops += Flops((vector_cost::kSilu + 1) * real(s.tokens() * s.inner()));
  return kernel;
}

std::vector<Kernel> scan_backward(const ScanShape& s) {
  const Traffic t(s);
  const std::int64_t heads = s.chunks() * s.heads, groups = s.chunks() * s.groups;
  const double state = real(s.state), states = head_flops(s, state);
  const double inside = head_flops(s, s.earlier()), wide_b = t.b / s.bytes * kWideBytes;
  const double of_groups = 2 * real(s.tokens() * s.groups * s.length * s.state);
  std::vector<Kernel> all;
  all.push_back(scan_products("mamba state gradient", {heads, s.head_dim, s.state, s.length},
                              states, t.x + t.b + t.steps, t.states * kWideBytes));
  all.push_back(scan_pass("mamba state passing backward", s.chunks(), s.states(),
                          {s.bytes + kWideBytes, 2 * s.bytes, 4}));
  all.push_back(with_decays(
      scan_products("mamba input gradient", {heads, s.length, s.head_dim, s.state + s.length},
                    states + inside, 2 * t.x + t.b + t.squares + 2 * t.steps + t.states * s.bytes,
                    t.x + t.steps),
      s));
  all.push_back(scan_products("mamba B gradient", {heads, s.length, s.state, s.head_dim}, states,
                              t.x + t.b + 2 * t.steps + t.states * s.bytes, wide_b + t.steps));
  all.push_back(scan_products("mamba C gradient", {heads, s.length, s.state, s.head_dim}, states,
                              t.x + t.b + t.steps + t.states * s.bytes, wide_b + t.steps));
  all.push_back(with_decays(
      scan_products("mamba chunk product gradient", {heads, s.length, s.length, s.head_dim}, inside,
                    2 * t.x + 2 * t.steps, t.squares),
      s));
  for (const char* name : {"mamba B gradient in chunks", "mamba C gradient in chunks"})
    all.push_back(scan_products(name, {groups, s.length, s.state, s.length}, of_groups,
                                t.squares + t.b + wide_b, t.b));
  all.push_back(
      with_decays(scan_products("mamba decay gradient", {heads, s.length, s.length, s.head_dim},
                                inside, 2 * t.x + t.squares + 2 * t.steps, t.steps),
                  s));
  all.push_back(scan_pass("mamba chunk cumsum backward", s.tokens(), s.heads,
                          {s.bytes + 2 * kWideBytes, s.bytes, kSoftplus + 4}));
  return all;
}

Kernel gated_norm(const ScanShape& s) {
  return scan_pass("mamba gated norm", s.tokens(), s.inner(),
                   {2 * s.bytes, s.bytes, vector_cost::kRmsNorm + vector_cost::kSilu + 1});
}

Kernel gate_outputs(const ScanShape& s) {
  return scan_pass("mamba gate", s.tokens(), s.inner(),
                   {2 * s.bytes, s.bytes, vector_cost::kSilu + 1});
}

Kernel group_norm(const ScanShape& s) {
  return scan_pass("mamba group norm", s.tokens(), s.inner(),
                   {s.bytes, s.bytes, vector_cost::kRmsNorm});
}

Kernel group_norm_backward(const ScanShape& s) {
  return scan_pass("mamba group norm backward", s.tokens(), s.inner(),
                   {2 * s.bytes, s.bytes, vector_cost::kNormBackward});
}

Kernel gate_backward(const ScanShape& s) {
  return scan_pass("mamba gate backward", s.tokens(), s.inner(),
                   {3 * s.bytes, 2 * s.bytes, 2 * vector_cost::kSilu + 4});
}

Kernel conv_update(const ScanShape& s, std::int64_t taps) {
  Kernel kernel = window_pass("mamba convolution update", s.tokens(), s.channels(),
                              {s.bytes, s.bytes, convolution_flops(taps)});
  const double window = real(s.sequences * s.channels() * (taps - 1)) * s.bytes;
  kernel.read += Bytes(window);
  kernel.written += Bytes(window);
  return kernel;
}

Kernel state_update(const ScanShape& s, double state_bytes) {
  Kernel kernel =
      block_pass("mamba state update", s.tokens(), s.states(), {0, state_bytes, kStateFlops});
  const double inputs = real(s.tokens()) * s.bytes;
  kernel.exponentials = Flops(real(s.tokens() * s.heads) * 2);
  kernel.read = Bytes(real(s.sequences * s.states()) * state_bytes +
                      inputs * real(s.inner() + 2 * s.groups * s.state + s.heads));
  kernel.written += Bytes(inputs * real(s.inner()));
  return kernel;
}

}  // namespace orrery
