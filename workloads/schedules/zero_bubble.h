// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedules/schedule.h"

namespace orrery {

/// One chunk per rank, backward passes in halves: `warm_up` forwards, then one forward and one
/// gradient of activations in turn, each followed by the gradient of weights of `delay`
/// micro-batches before, as late as memory allows (Qi et al. 2023, arXiv 2401.10241, section 2).
std::vector<Pass> zero_bubble_passes(std::int64_t micro_batches, std::int64_t warm_up,
                                     std::int64_t delay);

}  // namespace orrery
