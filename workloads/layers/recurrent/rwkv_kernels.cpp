// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/recurrent/rwkv_kernels.h"

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"

namespace orrery {

WkvShape wkv_shape(const RwkvConfig& rwkv, int tp, std::int64_t sequences, std::int64_t query,
                   double bytes) {
  return {rwkv.version, sequences, query, rwkv.heads / tp, rwkv.head_dim, bytes};
}

double wkv_flops(int version) {
  constexpr double kKeyValue = 1, kBonus = 2, kRead = 2, kDecay = 2;
  constexpr double kCorrection = 2, kUpdate = 5;
  return version < 7 ? kKeyValue + kBonus + kRead + kDecay : kCorrection + kUpdate + kRead;
}

Kernel wkv(const WkvShape& s, bool continues) {
  const double elements = real(s.tokens() * s.width());
  const double states = real(s.sequences * s.states()) * kWkvStateBytes;
  const double decays = s.version == 5 ? 0 : s.version == 6 ? sizeof(float) : 3 * s.bytes;
  // Exponentials of decays: one, or two, one in the other.
  const double exponentials = s.version == 5 ? 0 : s.version == 6 ? 1 : 2;
  Kernel kernel = matrix_kernel("wkv", KernelClass::kScan, Kernel().precision,
                                {s.query, s.head_dim, s.head_dim, s.sequences * s.heads});
  kernel.tile = {s.head_dim, s.head_dim};
  kernel.vector_flops =
      Flops(real(s.tokens() * s.states()) * wkv_flops(s.version) + elements * exponentials);
  kernel.exponentials = Flops(elements * exponentials);
  kernel.read = Bytes(elements * (3 * s.bytes + decays) + (continues ? states : 0));
  kernel.written = Bytes(elements * s.bytes + states);
  return kernel;
}

namespace {

constexpr double kWkvChunk = 16;     ///< tokens between the states that version 7 leaves
constexpr double kWkvGradients = 4;  ///< passes of versions 5 and 6 over the tokens
/// FLOPs of version 7's pass over those of the forward one: states back, their gradients, seven
/// sums. An estimate.
constexpr double kWkvBackwardWork = 3;

}  // namespace

double wkv_kept_bytes(const WkvShape& s) {
  if (s.version < 7) return 0;
  const double states = real(s.tokens()) / kWkvChunk * real(s.states());
  return (states + real(s.tokens() * s.width())) * kWkvStateBytes;
}

Kernel wkv_training(const WkvShape& s) {
  Kernel kernel = wkv(s, false);
  kernel.written =
      Bytes(real(s.tokens() * s.width()) * s.bytes + wkv_kept_bytes(s));  // no last states
  return kernel;
}

Kernel wkv_backward(const WkvShape& s) {
  const double elements = real(s.tokens() * s.width());
  Kernel kernel = wkv(s, false);
  kernel.name = "wkv backward";
  const double passes = s.version < 7 ? kWkvGradients : kWkvBackwardWork;
  kernel.vector_flops = passes * kernel.vector_flops;
  // Each pass of versions 5 and 6 reads all operands; gradients are as many as inputs.
  const Bytes inputs = kernel.read;
  kernel.read = (s.version < 7 ? passes : 1) * (inputs + Bytes(elements * s.bytes)) +
                Bytes(wkv_kept_bytes(s));
  kernel.written = inputs;
  return kernel;
}

Kernel wkv_norm_backward(const WkvShape& s) {
  const double more = s.version < 7 ? 0 : 3 * s.bytes;
  const double flops = s.version < 7 ? vector_cost::kSilu : 6;
  return stream("time mix norm backward", KernelClass::kNormalization, s.tokens(), s.width(),
                {3 * s.bytes + more, 2 * s.bytes + more, vector_cost::kNormBackward + 2 * flops});
}

Kernel wkv_norm(const WkvShape& s) {
  const double more = s.version < 7 ? 0 : 3 * s.bytes;
  const double flops = s.version < 7 ? vector_cost::kSilu : 6;
  return stream("time mix norm", KernelClass::kNormalization, s.tokens(), s.width(),
                {2 * s.bytes + more, s.bytes, vector_cost::kLayerNorm + flops + 1});
}

Kernel token_shift(const char* name, std::int64_t rows, std::int64_t hidden, std::int64_t mixtures,
                   double bytes, bool learned) {
  const auto outputs = real(mixtures);
  // The token before is that of the row before, in the cache once that has been read.
  const double read = bytes * (1 + (learned ? outputs : 0));
  return elementwise(name, rows, hidden,
                     {read, outputs * bytes, 1 + outputs * (learned ? 3.0 : 2.0)});
}

Kernel token_shift_backward(const char* name, std::int64_t rows, std::int64_t hidden,
                            std::int64_t mixtures, double bytes, bool learned) {
  const auto outputs = real(mixtures);
  const double weights = learned ? outputs : 0;
  return elementwise(name, rows, hidden,
                     {(1 + outputs + weights) * bytes, (1 + weights) * bytes, 1 + 4 * outputs});
}

}  // namespace orrery
