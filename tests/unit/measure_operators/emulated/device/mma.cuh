// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "device/number_formats.h"
#include "device/threads.h"

/// Stands in for validation/kernels/device/mma.cuh in a host compiler: 32 threads are the lanes of
/// a warp, and the collective instructions exchange through an array, laid out as the figures of
/// the PTX ISA ("Matrix Fragments for mma.m16n8k16", "ldmatrix") show.
namespace orrery::measure {

struct EmulatedWarp : EmulatedBlock {
  static constexpr int kLanes = 32;
  std::array<std::array<std::uint32_t, 6>, kLanes> exchange{};

  explicit EmulatedWarp(std::size_t bytes) : EmulatedBlock(bytes, kLanes) {}
};

/// Publishes this lane's words, and calls `read` when those of all lanes are there.
template <class Read>
void exchange_words(const std::array<std::uint32_t, 6>& words, const Read& read) {
  auto& warp = static_cast<EmulatedWarp&>(*block_of_thread);
  warp.exchange[threadIdx.x] = words;
  warp.threads.arrive_and_wait();
  read(warp);
  warp.threads.arrive_and_wait();
}

inline std::uint32_t element_of(const EmulatedWarp& warp, unsigned matrix, unsigned row,
                                unsigned column) {
  std::uint16_t value = 0;
  std::memcpy(&value, warp.shared.data() + warp.exchange[8 * matrix + row][0] + 2 * column, 2);
  return value;
}

inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  exchange_words({address}, [&](const EmulatedWarp& warp) {
    const unsigned row = threadIdx.x / 4, column = 2 * (threadIdx.x % 4);
    for (unsigned i = 0; i < 4; ++i) {
      r[i] = element_of(warp, i, row, column) | element_of(warp, i, row, column + 1) << 16;
    }
  });
}

inline void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  exchange_words({address}, [&](const EmulatedWarp& warp) {
    const unsigned column = threadIdx.x / 4, row = 2 * (threadIdx.x % 4);
    for (unsigned i = 0; i < 4; ++i) {
      r[i] = element_of(warp, i, row, column) | element_of(warp, i, row + 1, column) << 16;
    }
  });
}

inline float half_of(std::uint32_t word, int k) {
  return decode_bf16(static_cast<std::uint16_t>(k % 2 == 0 ? word & 0xFFFF : word >> 16));
}

/// A[row][k] is in lane 4 (row % 8) + k % 8 / 2, register row / 8 + 2 (k / 8); B[k][column] in lane
/// 4 column + k % 8 / 2, register k / 8.
inline void mma(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  exchange_words({a[0], a[1], a[2], a[3], b0, b1}, [&](const EmulatedWarp& warp) {
    const int lane = static_cast<int>(threadIdx.x);
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      for (int k = 0; k < 16; ++k) {
        const auto a_lane = static_cast<std::size_t>(4 * (row % 8) + k % 8 / 2);
        const auto b_lane = static_cast<std::size_t>(4 * column + k % 8 / 2);
        const auto a_register = static_cast<std::size_t>(row / 8 + 2 * (k / 8));
        const auto b_register = static_cast<std::size_t>(4 + k / 8);
        d[i] += half_of(warp.exchange[a_lane][a_register], k) *
                half_of(warp.exchange[b_lane][b_register], k);
      }
    }
  });
}

inline float __shfl_xor_sync(unsigned, float value, unsigned distance) {
  float other = 0;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  exchange_words({bits}, [&](const EmulatedWarp& warp) {
    std::memcpy(&other, &warp.exchange[threadIdx.x ^ distance][0], sizeof(other));
  });
  return other;
}

inline std::uint32_t pack_bf16(float low, float high) {
  return encode_bf16(low) | static_cast<std::uint32_t>(encode_bf16(high)) << 16;
}

}  // namespace orrery::measure
