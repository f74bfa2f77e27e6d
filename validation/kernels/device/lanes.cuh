// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

/// What kernels of plain threads ask of the hardware: wide accesses, pairs of bf16, exchanges in a
/// warp, sums in shared memory. tests/unit/measure_operators emulates this header.
namespace orrery::measure {

struct Words2 {
  std::uint32_t w[2];
};
struct Words4 {
  std::uint32_t w[4];
};

/// 8 or 16 bytes in one access; addresses are multiples of as many.
__device__ inline Words2 load_words2(const void* from) {
  const uint2 bits = *static_cast<const uint2*>(from);
  return {{bits.x, bits.y}};
}
__device__ inline Words4 load_words4(const void* from) {
  const uint4 bits = *static_cast<const uint4*>(from);
  return {{bits.x, bits.y, bits.z, bits.w}};
}
__device__ inline void store_words2(void* to, const Words2& words) {
  *static_cast<uint2*>(to) = make_uint2(words.w[0], words.w[1]);
}
__device__ inline void store_words4(void* to, const Words4& words) {
  *static_cast<uint4*>(to) = make_uint4(words.w[0], words.w[1], words.w[2], words.w[3]);
}

__device__ inline float float_of_bits(std::uint32_t bits) { return __uint_as_float(bits); }
__device__ inline std::uint32_t bits_of_float(float value) { return __float_as_uint(value); }

/// Two values as bf16, the first one in the low half.
__device__ inline std::uint32_t bf16_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.x)) |
         static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.y)) << 16;
}

/// The value of the lane whose number differs in the bits of `distance`; all 32 lanes take part.
__device__ inline float xor_lane(float value, int distance) {
  return __shfl_xor_sync(0xFFFFFFFFu, value, distance);
}
/// The value of the lane `distance` before; its own where there is none.
__device__ inline int lane_before(int value, int distance) {
  return __shfl_up_sync(0xFFFFFFFFu, value, static_cast<unsigned>(distance));
}

/// Adds to a number in shared memory; the number before.
__device__ inline int add_shared(int* to, int value) { return atomicAdd(to, value); }

}  // namespace orrery::measure
