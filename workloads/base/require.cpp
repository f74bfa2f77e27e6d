// SPDX-License-Identifier: Apache-2.0
#include "workloads/base/require.h"

#include <fmt/core.h>

#include <cstdlib>

namespace orrery {
namespace {

constexpr std::int64_t kMostTried = 1 << 20;

}  // namespace

config::Advice divisors_near(std::int64_t size, std::int64_t ways) {
  std::int64_t nearest = 1;
  std::string all;
  for (std::int64_t divisor = 1; divisor <= size && divisor <= kMostTried; ++divisor) {
    if (size % divisor != 0) continue;
    all += (all.empty() ? "" : ", ") + std::to_string(divisor);
    if (std::abs(divisor - ways) <= std::abs(nearest - ways)) nearest = divisor;
  }
  return {std::to_string(nearest), {fmt::format("divisors of {}: {}", size, all)}};
}

void require_divides(std::int64_t size, int ways, const char* key, const char* what) {
  if (size % ways == 0) return;  // without the texts below: planning asks for every point
  require(false, (std::string("parallel.") + key).c_str(),
          fmt::format("{} {} do not divide by {} = {}", size, what, key, ways),
          divisors_near(size, ways));
}

}  // namespace orrery
