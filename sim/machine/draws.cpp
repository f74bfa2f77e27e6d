// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/draws.h"

#include <algorithm>
#include <array>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <stdexcept>

#include "sim/units/hash.h"

namespace orrery {
namespace {

std::array<double, kDraws> mid_quantiles() {
  std::array<double, kDraws> values{};
  for (std::size_t i = 0; i < kDraws; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(kDraws);
    values[i] = std::sqrt(2.0) * boost::math::erf_inv(2 * share - 1);
  }
  return values;
}

}  // namespace

std::vector<double> normal_draws(std::int64_t seed, std::string_view key) {
  static const std::array<double, kDraws> quantiles = mid_quantiles();
  std::vector<double> values(quantiles.begin(), quantiles.end());
  std::uint64_t state = stable_hash(key) ^ (static_cast<std::uint64_t>(seed) * 0x9e3779b97f4a7c15);
  for (std::size_t i = kDraws - 1; i > 0; --i)
    std::swap(values[i], values[next_random(state) % (i + 1)]);
  return values;
}

std::pair<double, double> p10_p90(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("quantiles of nothing");
  std::sort(values.begin(), values.end());
  const auto at = [&values](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
  };
  return {at(0.1), at(0.9)};
}

}  // namespace orrery
