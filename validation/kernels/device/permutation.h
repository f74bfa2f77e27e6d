// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/host_device.h"

namespace orrery::measure {

/// A bijection of the numbers below 2^bits (bits <= 32), different for every seed. Each step can be
/// undone: xor with a constant, multiplication by an odd number modulo 2^bits, xor with the
/// number's own upper bits.
ORRERY_HD constexpr std::uint32_t scrambled(std::uint32_t x, int bits, std::uint32_t seed) {
  const std::uint32_t mask = bits >= 32 ? 0xFFFFFFFFu : (std::uint32_t{1} << bits) - 1;
  const int half = (bits + 1) / 2;
  x = (x ^ seed) & mask;
  x = (x * 0x9E3779B1u) & mask;
  x ^= x >> half;
  x = (x * 0x85EBCA6Bu) & mask;
  x ^= x >> half;
  x = (x * 0xC2B2AE35u) & mask;
  return x ^ (x >> half);
}

/// Least number of bits that counts `n` things.
ORRERY_HD constexpr int bits_for(std::uint32_t n) {
  int bits = 0;
  while (bits < 32 && (std::uint64_t{1} << bits) < n) ++bits;
  return bits;
}

/// Where number i of a random order of 0..n-1 is: a bijection for every n, by walking the cycle of
/// scrambled() until it is below n (Black and Rogaway, "Ciphers with arbitrary finite domains",
/// CT-RSA 2002).
ORRERY_HD constexpr std::uint32_t place(std::uint32_t i, std::uint32_t n, std::uint32_t seed) {
  const int bits = bits_for(n);
  std::uint32_t x = scrambled(i, bits, seed);
  while (x >= n) x = scrambled(x, bits, seed);
  return x;
}

}  // namespace orrery::measure
