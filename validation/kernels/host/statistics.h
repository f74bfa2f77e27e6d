// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace orrery::measure {

/// Median and spread of repeated timings of one thing.
struct Statistics {
  double median = 0;
  double minimum = 0;
  double p10 = 0, p90 = 0;  ///< linear interpolation between order statistics
  int repeats = 0;

  /// (p90 - p10) / median: how noisy the timings were.
  double spread() const { return median > 0 ? (p90 - p10) / median : 0; }
};

/// @throws std::invalid_argument for no samples, or one that is negative or not finite.
Statistics summarise(std::vector<double> samples);

}  // namespace orrery::measure
