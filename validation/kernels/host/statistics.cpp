// SPDX-License-Identifier: Apache-2.0
#include "host/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace orrery::measure {
namespace {

/// Quantile q of sorted samples, linear between order statistics (Hyndman and Fan 1996, type 7).
double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Statistics summarise(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("no samples to summarise");
  for (const double sample : samples) {
    if (!std::isfinite(sample) || sample < 0) {
      throw std::invalid_argument("a timing is negative or not finite");
    }
  }
  std::sort(samples.begin(), samples.end());
  Statistics result;
  result.median = quantile(samples, 0.5);
  result.minimum = samples.front();
  result.p10 = quantile(samples, 0.1);
  result.p90 = quantile(samples, 0.9);
  result.repeats = static_cast<int>(samples.size());
  return result;
}

}  // namespace orrery::measure
