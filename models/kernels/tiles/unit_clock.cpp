// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/unit_clock.h"

namespace orrery {

double unit_kclk_us(const AcceleratorConfig& accelerator) {
  constexpr double kBytesPerClock = 128;
  const double clock = accelerator.compute.clock.value.base();
  if (!accelerator.core) return 1e9 / clock;
  const double shared = accelerator.core->shared_bandwidth.value.base() / kBytesPerClock;
  // By the clock itself where the width is about that, so that another clock alone shows.
  const bool same = shared > 0.5 * clock && shared < 1.5 * clock;
  return 1e9 / (same || shared == 0 ? clock : shared);
}

}  // namespace orrery
