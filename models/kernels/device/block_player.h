// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "models/kernels/device/block_schedule.h"

namespace orrery {

/// Moments closer than this share of the time are one moment: rounding must not split waves.
inline constexpr double kSameTime = 1e-12;

/// (a^p + b^p)^(1/p), where it can without pow(), which would be most of the work.
inline double joined(double a, double b, double p) {
  if (b <= 0 || a <= 0) return std::max({a, b, 0.0});
  if (p == 0) return std::max(a, b);
  if (p == 2) return std::sqrt(a * a + b * b);
  if (p == 3) return std::cbrt(a * a * a + b * b * b);
  if (p == 4) return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
  const double most = std::max(a, b);
  return most * std::pow(1 + std::pow(std::min(a, b) / most, p), 1 / p);
}

/// Sums over blocks of what they do.
inline void add_work(BlockSchedule& schedule, const BlockKind& kind, double blocks) {
  schedule.memory_bytes += kind.memory_bytes * blocks;
  schedule.cache_bytes += kind.cache_bytes * blocks;
  schedule.pipe_busy_us += kind.pipe_us * blocks;
  schedule.flops += kind.flops * blocks;
}

/// play_blocks() for blocks that hold each other up: all rates change with every start and end.
BlockSchedule play_together(const std::vector<BlockKind>& kinds,
                            const std::vector<BlockRun>& launch, const BlockMachine& machine,
                            std::int64_t repeats);

}  // namespace orrery
