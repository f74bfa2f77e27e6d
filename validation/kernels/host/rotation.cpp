// SPDX-License-Identifier: Apache-2.0
#include "host/rotation.h"

#include <algorithm>
#include <cmath>

namespace orrery::measure {

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

}  // namespace orrery::measure
