// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "device/number_formats.h"
#include "device/threads.h"

/// Stands in for validation/kernels/device/wgmma.cuh: every thread computes its own accumulators,
/// and finds its operands through the descriptors as the PTX ISA describes them.
namespace orrery::measure {

inline void wgmma_fence() {}
inline void wgmma_commit() {}
/// The lanes of a warp go on together: none may still read what another releases.
template <int kPending>
void wgmma_wait() {
  block_of_thread->warps[threadIdx.x / 32].arrive_and_wait();
}

/// bf16 element `k` of row `row` of a K-major operand in the 128-byte swizzle.
inline float operand_of(std::uint64_t descriptor, int row, int k) {
  const auto start = static_cast<std::uint32_t>(descriptor & 0x3FFF) << 4;
  const auto stride = static_cast<std::uint32_t>(descriptor >> 32 & 0x3FFF) << 4;
  const std::uint32_t plain = start + static_cast<std::uint32_t>(row / 8) * stride +
                              static_cast<std::uint32_t>(row % 8 * 128 + 2 * k);
  std::uint16_t code = 0;
  std::memcpy(&code, block_of_thread->shared.data() + (plain ^ (plain >> 7 & 7) << 4), 2);
  return decode_bf16(code);
}

template <Format kFormat, int kN>
struct Wgmma {
  static_assert(kFormat == Format::kBf16);
  static void ss(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    for (int i = 0; i < kN / 2; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + (i % 4 >= 2 ? 8 : 0);
      const int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
      for (int k = 0; k < 16; ++k) d[i] += operand_of(a, row, k) * operand_of(b, column, k);
    }
  }
};

}  // namespace orrery::measure
