// SPDX-License-Identifier: Apache-2.0
#include "host/sampling.h"

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

int rotation(const DeviceInfo& device, std::size_t bytes, std::size_t budget_bytes) {
  if (bytes == 0) return 1;
  const std::size_t twice_l2 = 2 * static_cast<std::size_t>(device.l2_bytes);
  const std::size_t cold = bytes > twice_l2 ? 1 : twice_l2 / bytes + 1;
  const std::size_t fitting = std::max<std::size_t>(budget_bytes / bytes, 1);
  // Every copy is a node of the graph that is timed: thousands take as many milliseconds to build.
  constexpr std::size_t kMost = 4096;
  return static_cast<int>(std::min({cold, fitting, kMost}));
}

int launches_per_sample(double one_us, int copies) {
  constexpr double kSample_us = 200;
  const double wanted = std::ceil(kSample_us / std::max(one_us, 1e-3));
  const int launches = static_cast<int>(std::clamp(wanted, 1.0, 256.0));
  return (launches + copies - 1) / copies * copies;
}

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
