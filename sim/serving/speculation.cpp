// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/speculation.h"

#include <algorithm>
#include <numeric>

#include "sim/units/hash.h"

namespace orrery {

double Speculation::mean_tokens() const { return std::accumulate(right.begin(), right.end(), 1.0); }

void Speculation::accept(RequestState& progress) const {
  if (right.empty()) return;
  std::uint64_t state = static_cast<std::uint64_t>(progress.request.id) << 32 ^
                        static_cast<std::uint64_t>(progress.produced);
  const double drawn = next_uniform(state);
  std::int64_t accepted = 0;
  while (accepted < draft_tokens() && drawn < right[static_cast<std::size_t>(accepted)]) ++accepted;
  accepted = std::min(accepted, progress.request.output - progress.produced);
  progress.cached += accepted;
  progress.produced += accepted;
}

Speculation Speculation::of_mean(std::int64_t draft_tokens, double mean) {
  // The sum of rate^1 to rate^draft_tokens grows with the rate: halving finds it.
  constexpr int kHalvings = 60;
  double low = 0, high = 1;
  Speculation result;
  result.right.resize(static_cast<std::size_t>(draft_tokens));
  for (int i = 0; i < kHalvings; ++i) {
    const double rate = (low + high) / 2;
    double all = 1;
    for (double& probability : result.right) probability = all *= rate;
    (result.mean_tokens() < mean ? low : high) = rate;
  }
  return result;
}

Speculation Speculation::of_means(const std::vector<double>& means) {
  Speculation result;
  double before = 1, last = 1;
  for (const double mean : means) {
    last = std::clamp(mean - before, 0.0, last);
    before = std::max(before, mean);
    result.right.push_back(last);
  }
  return result;
}

}  // namespace orrery
