// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/vector_lanes.h"

#include <algorithm>

namespace orrery {

double vector_us(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  constexpr double kMicrosecondsOfASecond = 1e6;
  const double dies = accelerator.dies;
  const double lanes = kernel.vector_flops.base() /
                       (accelerator.compute.vector.value.base() / dies) * kMicrosecondsOfASecond;
  if (!accelerator.compute.special) return lanes;
  return std::max(lanes, kernel.exponentials.base() /
                             (accelerator.compute.special->value.base() / dies) *
                             kMicrosecondsOfASecond);
}

}  // namespace orrery
