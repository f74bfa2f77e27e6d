// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/number_formats.h"
#include "device/threads.h"

/// Stands in for validation/kernels/device/lanes.cuh in a host compiler.
#define __global__
#define __shared__ static
#define __launch_bounds__(...)

namespace orrery::measure {

/// A block whose lanes exchange values, warp by warp.
struct EmulatedLanes : EmulatedBlock {
  std::vector<std::uint32_t> words;

  explicit EmulatedLanes(int count)
      : EmulatedBlock(0, count), words(static_cast<std::size_t>(count)) {}
};

/// What the thread `from` of the same warp gives.
inline std::uint32_t exchanged(std::uint32_t word, unsigned from) {
  auto& block = static_cast<EmulatedLanes&>(*block_of_thread);
  std::barrier<>& warp = block.warps[threadIdx.x / 32];
  block.words[threadIdx.x] = word;
  warp.arrive_and_wait();
  const std::uint32_t other = block.words[from];
  warp.arrive_and_wait();
  return other;
}

struct Words2 {
  std::uint32_t w[2];
};
struct Words4 {
  std::uint32_t w[4];
};

template <class Words>
Words load_words(const void* from) {
  Words words;
  std::memcpy(&words, from, sizeof(words));
  return words;
}
inline Words2 load_words2(const void* from) { return load_words<Words2>(from); }
inline Words4 load_words4(const void* from) { return load_words<Words4>(from); }
inline void store_words2(void* to, const Words2& words) { std::memcpy(to, &words, sizeof(words)); }
inline void store_words4(void* to, const Words4& words) { std::memcpy(to, &words, sizeof(words)); }

inline float float_of_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline std::uint32_t bits_of_float(float value) { return __builtin_bit_cast(std::uint32_t, value); }

inline std::uint32_t bf16_pair(float low, float high) {
  return encode_bf16(low) | static_cast<std::uint32_t>(encode_bf16(high)) << 16;
}

inline float xor_lane(float value, int distance) {
  return float_of_bits(
      exchanged(bits_of_float(value), threadIdx.x ^ static_cast<unsigned>(distance)));
}
inline int lane_before(int value, int distance) {
  const auto back = static_cast<unsigned>(distance);
  const unsigned from = threadIdx.x % 32 >= back ? threadIdx.x - back : threadIdx.x;
  return static_cast<int>(exchanged(static_cast<std::uint32_t>(value), from));
}

inline int add_shared(int* to, int value) { return std::atomic_ref<int>(*to).fetch_add(value); }

}  // namespace orrery::measure
