// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/pricing.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

/// A die while an operator runs: the clock of its units and what it uses.
struct OperatorPower {
  Hertz clock;
  EnergyUse energy;
};

/// Kernels run one after the other. The clock is the mean of theirs (KernelCost::clock) and, but
/// for the state `boost`, one that keeps the power cap: tables are measured by replaying a kernel
/// for long enough. Energies of units and caches follow the square of the voltage at that clock.
OperatorPower operator_power(const std::vector<Kernel>& kernels,
                             const std::vector<KernelCost>& costs,
                             const AcceleratorConfig& accelerator);

}  // namespace orrery
