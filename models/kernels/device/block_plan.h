// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/kernels/device/block_schedule.h"

namespace orrery {

/// The thread blocks that a kernel is made of, in launch order, and what it takes beside them. The
/// kernel takes launch_us + extra_us + scale * (time of its blocks).
struct BlockPlan {
  std::vector<BlockKind> kinds;
  std::vector<BlockRun> launch;
  std::int64_t repeats = 1;  ///< passes of the launch order: heads of attention, say
  BlockMachine machine;
  double launch_us = 0;  ///< launch overhead
  double extra_us = 0;   ///< kernels before and after, such as adding up partial sums
  /// What is known of the kernel as a whole only: clock lost to the power limit, choices of a
  /// library that are not the best.
  double scale = 1;
};

}  // namespace orrery
