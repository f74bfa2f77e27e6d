// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/schedules/schedule.h"

namespace orrery {

/// A rank of a pipeline that works on two ways at once: micro-batches of the one come from the end
/// that is nearer to the rank, those of the other from beyond the middle.
struct DualRank {
  std::int64_t half = 1;                       ///< ranks from an end to the middle
  std::int64_t from_end = 0;                   ///< ranks between this one and the nearer end
  int near_chunk = 0;                          ///< chunk of the near way; the far way has the other
  std::int64_t micro_batches = 0;              ///< micro-batches of each way
  std::array<std::int64_t, 2> first = {0, 0};  ///< micro-batch that each chunk begins with
};

/// The eight phases of DualPipe (deepseek-ai/DualPipe, dualpipe/dualpipe.py, bb214e8): forwards of
/// one way side by side with backwards of the other, and gradients of weights at the ends.
std::vector<Pass> dual_passes(const DualRank& rank);

}  // namespace orrery
