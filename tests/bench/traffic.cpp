// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/traffic.h"

#include <cmath>

#include "tests/bench/contest.h"

namespace orrery::bench {
namespace {

// SimGrid takes what happens within 1 ns as one: large messages keep that out of the comparison.
constexpr double kBytes = 1 << 28;

}  // namespace

double Traffic::size(std::uint64_t chain, std::uint32_t step) const {
  if (sizes == Sizes::kEqual) {
    return bytes;
  }
  Random random(chain * steps + step + 1);
  for (int i = 0; i < 4; ++i) {
    random(2);  // neighbouring seeds start alike
  }
  return std::floor(bytes * (0.9 + 0.2 * static_cast<double>(random(1U << 20)) / (1U << 20)));
}

Traffic nvl72_all_to_all(Sizes sizes) {
  Traffic traffic{72, 1, 900e9, kBytes, sizes, {}};
  for (std::uint32_t from = 0; from < traffic.ranks; ++from) {
    for (std::uint32_t to = 0; to < traffic.ranks; ++to) {
      if (from != to) {
        traffic.chains.push_back({from, to});
      }
    }
  }
  return traffic;
}

Traffic ring_1024(Sizes sizes) {
  constexpr std::uint32_t kRanks = 1024;
  Traffic traffic{kRanks, 2 * (kRanks - 1), 50e9, kBytes, sizes, {}};
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    traffic.chains.push_back({rank, (rank + 1) % kRanks});
  }
  return traffic;
}

}  // namespace orrery::bench
