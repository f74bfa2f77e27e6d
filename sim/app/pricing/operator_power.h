// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/pricing/pricing.h"
#include "sim/machine/kernel_model.h"

namespace orrery {

/// A die while an operator runs.
struct OperatorPower {
  std::vector<KernelCost> costs;  ///< costs by kernel, at the clocks at which they run
  Hertz clock;                    ///< clock of the units, the mean by time
  EnergyUse energy;
};

/// Prices kernels that run one after the other, at their clocks in a power state (power_balance.h).
/// @param state kBurst or kSteady
OperatorPower settle_operator(const std::vector<Kernel>& kernels,
                              const AcceleratorConfig& accelerator, PowerState state,
                              const KernelModel& model);

}  // namespace orrery
