// SPDX-License-Identifier: Apache-2.0
#include "workloads/schedules/zero_bubble.h"

#include <algorithm>
#include <cstddef>

namespace orrery {

std::vector<Pass> zero_bubble_passes(std::int64_t micro_batches, std::int64_t warm_up,
                                     std::int64_t delay) {
  std::vector<Pass> all;
  all.reserve(static_cast<std::size_t>(3 * micro_batches));
  std::int64_t forward = std::min(warm_up, micro_batches), weights = 0;
  for (std::int64_t i = 0; i < forward; ++i) all.push_back({Pass::Kind::kForward, 0, i});
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    if (forward < micro_batches) all.push_back({Pass::Kind::kForward, 0, forward++});
    all.push_back({Pass::Kind::kInputGradient, 0, i});
    if (i >= delay) all.push_back({Pass::Kind::kWeightGradient, 0, weights++});
  }
  while (weights < micro_batches) all.push_back({Pass::Kind::kWeightGradient, 0, weights++});
  return all;
}

}  // namespace orrery
