// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/costs.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Seconds that no run of a kernel beats at the nameplates of one rank, the largest of
///  - matrix FLOPs over the matrix peak, vector FLOPs over the vector peak, exponentials over the
///    special function rate;
///  - all that it reads and writes over the L2 bandwidth: nothing gets to the units by another way;
///  - what of it the L2 cannot hold over the memory bandwidth;
///  - bytes over the link to the host, copies over the rate of their engines.
Seconds least_time(const Kernel& kernel, const AcceleratorConfig& accelerator);

/// Seconds that a kernel takes at the nameplate of one rate, its operands moved once; 0 where it
/// does not use it, or the device has none.
Seconds time_at_rate(const Kernel& kernel, const AcceleratorConfig& accelerator, Bound rate);

/// Bytes of a kernel on one rank that its last cache cannot hold, so that they come from the
/// memory.
Bytes least_from_memory(const Kernel& kernel, const AcceleratorConfig& accelerator);

/// What a kernel is nearest to.
struct Limit {
  Bound bound = Bound::kLatency;
  Seconds time;  ///< time at the nameplate of the rate it is nearest to, whatever the bound
};

/// The rate whose nameplate the kernel comes nearest to. Operands that tiles read again from the L2
/// count there as often (KernelCost::cache), and at the memory what the model says comes from it
/// (KernelCost::memory); as both are estimates, neither counts for more than the rate gives in the
/// kernel's time. The bound is latency where launching takes longer than the rest, or where no rate
/// takes a quarter of the kernel's time.
Limit limit_of(const Kernel& kernel, const KernelCost& cost, const AcceleratorConfig& accelerator);

}  // namespace orrery
