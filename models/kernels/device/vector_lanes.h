// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// What the vector lanes of a die take for a kernel at their peak, in microseconds; exponentials
/// run beside the other instructions where there are units for them.
double vector_us(const Kernel& kernel, const AcceleratorConfig& accelerator);

}  // namespace orrery
