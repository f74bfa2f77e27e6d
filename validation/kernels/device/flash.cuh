// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/mma.cuh"
#include "device/swizzle.h"

/// The step of flash attention that prefill and decode share: one warp, 16 query rows, a tile of
/// keys and values in shared memory, softmax with running maximum (Dao et al., arXiv 2205.14135,
/// algorithm 1). A plain kernel for mma.sync, not FlashAttention-3.
namespace orrery::measure {

template <int kHeadDim>
constexpr int kChunks = kHeadDim / 8;  // 16-byte chunks of a row

/// Which keys a row sees: those before `keys`, and, causal, up to the row's own position.
struct Mask {
  int keys = 0;
  int first_position = 0;  ///< of the warp's row 0 among the keys
  bool causal = false;
};

/// Rows lane / 4 and lane / 4 + 8 of the warp are this thread's; [0] and [1] throughout.
template <int kHeadDim, int kKeys>
struct FlashWarp {
  std::uint32_t query[kHeadDim / 16][4];
  float out[kHeadDim / 8][4] = {};
  float largest[2] = {-INFINITY, -INFINITY};  ///< of the scaled scores, in base 2
  float sum[2] = {0, 0};                      ///< this thread's part

  __device__ void load_query(std::uint32_t tile, int first_row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k) {
      load_matrices(query[k], tile + chunk_offset(first_row + lane % 16, 2 * k + lane / 16,
                                                  kChunks<kHeadDim>));
    }
  }

  /// scores = query keys^T, unscaled.
  __device__ void multiply_keys(float (&scores)[kKeys / 8][4], std::uint32_t keys) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = lane / 16 * 8 + lane % 8, chunk = lane / 8 % 2;
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k) {
#pragma unroll
      for (int n = 0; n < kKeys / 16; ++n) {
        std::uint32_t b[4];
        load_matrices(b, keys + chunk_offset(16 * n + row, 2 * k + chunk, kChunks<kHeadDim>));
        mma(scores[2 * n], query[k], b[0], b[1]);
        mma(scores[2 * n + 1], query[k], b[2], b[3]);
      }
    }
  }

  __device__ static void hide(float (&scores)[kKeys / 8][4], int first_key, const Mask& mask) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = first_key + 8 * n + 2 * (lane % 4) + i % 2;
        const int position = mask.first_position + lane / 4 + 8 * (i / 2);
        if (key >= mask.keys || (mask.causal && key > position)) scores[n][i] = -INFINITY;
      }
    }
  }

  /// Scores become weights; what was summed up under a smaller maximum is scaled down. Every row
  /// must have seen at least one key, in this tile or before.
  __device__ void soften(float (&scores)[kKeys / 8][4], float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = -INFINITY;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        most = fmaxf(most, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      }
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, 2));
      const float now = fmaxf(largest[half], most * scale_log2);
      const float shrink = exp2f(largest[half] - now);
      largest[half] = now;
      sum[half] *= shrink;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        out[n][2 * half] *= shrink;
        out[n][2 * half + 1] *= shrink;
      }
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = exp2f(scores[n][i] * scale_log2 - now);
          sum[half] += scores[n][i];
        }
      }
    }
  }

  /// out += weights values.
  __device__ void multiply_values(const float (&weights)[kKeys / 8][4], std::uint32_t values) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      const auto& low = weights[2 * k];
      const auto& high = weights[2 * k + 1];
      const std::uint32_t a[4] = {pack_bf16(low[0], low[1]), pack_bf16(low[2], low[3]),
                                  pack_bf16(high[0], high[1]), pack_bf16(high[2], high[3])};
#pragma unroll
      for (int n = 0; n < kHeadDim / 16; ++n) {
        std::uint32_t b[4];
        load_matrices_transposed(
            b, values + chunk_offset(16 * k + lane % 16, 2 * n + lane / 16, kChunks<kHeadDim>));
        mma(out[2 * n], a, b[0], b[1]);
        mma(out[2 * n + 1], a, b[2], b[3]);
      }
    }
  }

  /// One tile of keys and values, the first of which is key `first_key`.
  __device__ void step(std::uint32_t keys, std::uint32_t values, int first_key, const Mask& mask,
                       float scale_log2) {
    float scores[kKeys / 8][4] = {};
    multiply_keys(scores, keys);
    const bool partly = first_key + kKeys > mask.keys ||
                        (mask.causal && first_key + kKeys - 1 > mask.first_position);
    if (partly) hide(scores, first_key, mask);
    soften(scores, scale_log2);
    multiply_values(scores, values);
  }

  /// The sum of the weights of row `half`, over the four threads that share it.
  __device__ float total(int half) const {
    float all = sum[half] + __shfl_xor_sync(0xFFFFFFFFu, sum[half], 1);
    all += __shfl_xor_sync(0xFFFFFFFFu, all, 2);
    return all;
  }
};

}  // namespace orrery::measure
