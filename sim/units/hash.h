// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

/// FNV-1a, 64 bits: the same number for the same text on every machine.
constexpr std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the next of a sequence of well mixed numbers.
/// Sequences of neighbouring states are unrelated.
constexpr std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// The next number of the sequence, uniform in (0, 1).
constexpr double next_uniform(std::uint64_t& state) {
  return (static_cast<double>(next_random(state) >> 11) + 0.5) * 0x1p-53;
}

}  // namespace orrery
