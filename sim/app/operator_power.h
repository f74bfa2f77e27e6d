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

/// The clock follows from how much longer the kernels take than they would at the boost clock, and,
/// but for the state `boost`, is one that keeps the power cap: tables are measured by replaying a
/// kernel for long enough. Energies of units follow the square of the voltage at that clock.
/// @param time of all kernels together
OperatorPower operator_power(const std::vector<Kernel>& kernels,
                             const AcceleratorConfig& accelerator, const KernelModel& model,
                             Seconds time);

}  // namespace orrery
