// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

namespace orrery {

/// Random choices that are the same on every machine for a seed: the distributions of the standard
/// library are not.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  /// One of 0, 1, ... count - 1.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
  bool chance(double probability) { return share() < probability; }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }
  std::string of(std::initializer_list<const char*> choices) {
    return *(choices.begin() + below(choices.size()));
  }
  int of(std::initializer_list<int> choices) { return *(choices.begin() + below(choices.size())); }
  /// Between low and high, small ones as often as large ones.
  std::int64_t spread(double low, double high) {
    return std::llround(low * std::pow(high / low, share()));
  }
  /// A power of two between low and high, both powers of two.
  std::int64_t power(std::int64_t low, std::int64_t high) {
    std::size_t steps = 1;
    for (std::int64_t value = low; value < high; value *= 2) ++steps;
    return low << below(steps);
  }

 private:
  double share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  std::mt19937_64 engine_;
};

}  // namespace orrery
