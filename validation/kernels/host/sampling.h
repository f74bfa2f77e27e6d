// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "host/measurement.h"

namespace orrery::measure {

/// How many copies of a working set of `bytes` exceed twice the L2, so that no launch finds its
/// inputs warm; 1 where one already does; at most what fits `budget_bytes`, and 4096: a set below a
/// 2048th of the L2 stays in it.
int rotation(const DeviceInfo& device, std::size_t bytes,
             std::size_t budget_bytes = std::size_t{8} << 30);

/// How many launches of `one_us` make a sample of 200 us, 256 at most; then as many more as it
/// takes to visit each of the `copies` equally often.
int launches_per_sample(double one_us, int copies);

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
