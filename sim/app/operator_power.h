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

/// Gives kernels that run one after the other, as the model prices them, their clocks and times in
/// a power state (power_balance.h).
/// @param state kBurst or kSteady
/// @return their mean clock by time, and their energies at their clocks
OperatorPower settle_operator(const std::vector<Kernel>& kernels,
                              const AcceleratorConfig& accelerator, PowerState state,
                              std::vector<KernelCost>& costs);

}  // namespace orrery
