// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/random.h"

namespace orrery::measure {

/// Word i of a buffer of random 32-bit words. Sums of words modulo 2^32 do not depend on the order
/// of addition, so kernels that read in any order are checked exactly.
ORRERY_HD constexpr std::uint32_t random_word(std::uint64_t seed, std::uint64_t index) {
  return static_cast<std::uint32_t>(random_bits(seed, index));
}

/// Sum modulo 2^32 of the words from `begin` up to but without `end`.
constexpr std::uint32_t sum_of_words(std::uint64_t seed, std::uint64_t begin, std::uint64_t end) {
  std::uint32_t sum = 0;
  for (std::uint64_t i = begin; i < end; ++i) sum += random_word(seed, i);
  return sum;
}

}  // namespace orrery::measure
