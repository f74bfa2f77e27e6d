// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/timing.cuh"
#include "device/words.h"

namespace orrery::measure {

/// Fills `count` 32-bit words so that word i is random_word(seed, i); waits for it.
void fill_words(std::uint32_t* words, std::size_t count, std::uint64_t seed);

/// The words of a device buffer, on the host.
std::vector<std::uint32_t> copy_words(const std::uint32_t* words, std::size_t count);

/// Adds the lanes' values of a whole warp; all lanes get the sum.
__device__ inline std::uint32_t warp_sum(std::uint32_t value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
  }
  return value;
}

__device__ inline std::uint32_t sum_of(const uint4& v) { return v.x + v.y + v.z + v.w; }

}  // namespace orrery::measure
