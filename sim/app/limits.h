// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/costs.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Seconds that a kernel would take at the nameplate of what limits it: matrix or vector peak, L2
/// or memory bandwidth (each operand once), link to the host. Where latency does, of the slowest of
/// these. Over the kernel's time it is the share of the limit that the kernel reaches.
double time_at_limit(const Kernel& kernel, const AcceleratorConfig& accelerator, Bound bound);

}  // namespace orrery
