// SPDX-License-Identifier: Apache-2.0
// Kernels of RWKV (github.com/BlinkDL/RWKV-LM, rwkv/cuda/rwkv5.cu, rwkv6.cu and RWKV-v7/cuda/
// wkv7s.cu): a recurrence over tokens, one after the other, in one thread block for each head and
// sequence, whose threads hold a row of the state each; and what is done elementwise around it.
#pragma once

#include <cstdint>

#include "workloads/base/real.h"
#include "workloads/layers/parts/rank_work.h"

namespace orrery {

/// What one rank works on.
struct WkvShape {
  int version = 5;
  std::int64_t sequences = 1;
  std::int64_t query = 1;  ///< tokens of each sequence
  std::int64_t heads = 1, head_dim = 64;
  double bytes = 2;  ///< bytes of an element of receptances, keys, values and outputs

  std::int64_t tokens() const { return sequences * query; }
  std::int64_t width() const { return heads * head_dim; }
  /// Elements of the states of one sequence.
  std::int64_t states() const { return width() * head_dim; }
};
WkvShape wkv_shape(const RwkvConfig& rwkv, int tp, std::int64_t sequences, std::int64_t query,
                   double bytes);

/// Bytes of an element of a state: fp32.
inline constexpr double kWkvStateBytes = 4;
/// Bytes of the last token, which the next one is mixed with.
inline double rwkv_shift_bytes(const LlmConfig& model) { return 2 * real(model.hidden); }
/// FLOPs for each element of a state and token: k v, u k v + s, times r and added up, s w + k v; in
/// version 7 s a and its sum, s w + k v + sa b, times r and added up.
double wkv_flops(int version);

/// The recurrence of prompts, or of new tokens. It reads and writes the state once: decays of
/// version 5 are constants, those of 6 are fp32, 7 has those, a and b besides in 16 bits.
/// @param continues earlier tokens have left a state that is read
Kernel wkv(const WkvShape& s, bool continues);

/// Training (RWKV-LM, RWKV-v5/cuda/wkv5_cuda.cu, wkv6_cuda.cu, RWKV-v7/train_temp/cuda/
/// wkv7_cuda.cu): versions 5 and 6 keep nothing and go over the tokens once for the output and once
/// for each of four gradients; 7 leaves a state every 16 tokens and a sum a row in fp32, from which
/// one pass from the last token to the first makes states and gradients again.
Kernel wkv_training(const WkvShape& s);
Kernel wkv_backward(const WkvShape& s);
/// Bytes that it leaves.
double wkv_kept_bytes(const WkvShape& s);

/// Norm of each head times the gate; 7 adds values weighted by the product of receptance and key.
Kernel wkv_norm(const WkvShape& s);
Kernel wkv_norm_backward(const WkvShape& s);

/// `mixtures` of each token with the one before it, on [rows, hidden].
/// @param learned columns of mixtures that follow from the token are read besides
Kernel token_shift(const char* name, std::int64_t rows, std::int64_t hidden, std::int64_t mixtures,
                   double bytes, bool learned = false);
/// Gradients of the tokens and of what mixes them.
Kernel token_shift_backward(const char* name, std::int64_t rows, std::int64_t hidden,
                            std::int64_t mixtures, double bytes, bool learned = false);

}  // namespace orrery
