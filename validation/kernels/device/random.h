// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/number_formats.h"

namespace orrery::measure {

/// Counter-based random bits: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) of
/// seed and index. Host and device agree, so a reference needs no copy of the inputs.
ORRERY_HD constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0xD1342543DE82EF95ull + (index + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

/// Mean 0, variance 1, |x| < 3.5: the sum of four 16-bit uniform numbers (Irwin-Hall), which needs
/// no function that host and device would round differently.
ORRERY_HD constexpr float normal_from_bits(std::uint64_t bits) {
  const auto sum = static_cast<std::int32_t>((bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) +
                                             ((bits >> 32) & 0xFFFF) + (bits >> 48));
  return static_cast<float>(sum - 131070) * (1.0f / 37837.23f);  // 65536 / sqrt(3)
}

/// What a buffer is filled with. Switching power follows the data: Luo et al., arXiv 2402.13499.
enum class Data { kZeros, kRandom, kSparse };

constexpr const char* name_of(Data data) {
  return data == Data::kZeros ? "zeros" : data == Data::kRandom ? "random" : "sparse";
}

/// Element `index` of a buffer: normal numbers; sparse: half of them, at random, are zero.
ORRERY_HD constexpr float random_value(Data data, std::uint64_t seed, std::uint64_t index) {
  if (data == Data::kZeros) return 0;
  const std::uint64_t bits = random_bits(seed, index);
  if (data == Data::kSparse && (bits & 1)) return 0;
  return normal_from_bits(bits);
}

/// The same as stored in a buffer of `format`.
ORRERY_HD constexpr float stored_value(Format format, Data data, std::uint64_t seed,
                                       std::uint64_t index) {
  return rounded_to(format, random_value(data, seed, index));
}

}  // namespace orrery::measure
