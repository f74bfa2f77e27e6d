// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Microseconds that a unit needs for what takes one of NVIDIA's multiprocessors 1,000 clocks:
/// those since Volta move 128 bytes a clock through their shared memory, a unit n times as wide
/// counts as n of them. Kernels that are bound by loads, conversions and exponentials rather than
/// by products go with that.
double unit_kclk_us(const AcceleratorConfig& accelerator);

}  // namespace orrery
