// SPDX-License-Identifier: Apache-2.0
#include "sim/app/operator_power.h"

#include <algorithm>

#include "sim/machine/clock.h"

namespace orrery {
namespace {

/// What the kernels keep busy on average; the other dies of a package do the same.
Activity activity_of(const std::vector<Kernel>& kernels, const std::vector<KernelCost>& costs,
                     Seconds time, double dies) {
  Flops matrix, vector;
  Bytes bytes, cached;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Bytes moved = kernels[i].read + kernels[i].written;
    matrix += kernels[i].matrix_flops;
    vector += kernels[i].vector_flops;
    bytes += moved;
    cached += std::max(Bytes(), costs[i].cache - moved);
  }
  Activity activity;
  activity.precision = kernels.front().precision;
  activity.matrix = matrix / time * dies;
  activity.vector = vector / time * dies;
  activity.memory = bytes / time * dies;
  activity.cache = cached / time * dies;
  activity.with_clock = false;  // these are the rates at whatever clock it is
  return activity;
}

}  // namespace

OperatorPower operator_power(const std::vector<Kernel>& kernels,
                             const std::vector<KernelCost>& costs,
                             const AcceleratorConfig& accelerator) {
  Seconds time, at_boost;
  for (const KernelCost& cost : costs) {
    const Seconds duration = to_seconds(cost.duration);
    time += duration;
    at_boost += duration * cost.clock;
  }
  const Activity activity = activity_of(kernels, costs, time, accelerator.dies);
  const Hertz boost = boost_clock(accelerator);
  double share = std::min(1.0, at_boost / time);
  if (accelerator.power.state != PowerState::kBoost)
    share = std::min(share, sustained_clock(accelerator, activity).clock / boost);
  OperatorPower power{boost * share, kernel_energy(kernels, costs, accelerator)};
  const double voltage = energy_of_voltage(accelerator, activity.precision, share);
  for (Joules EnergyUse::*part :
       {&EnergyUse::matrix, &EnergyUse::vector, &EnergyUse::cache, &EnergyUse::shared})
    power.energy.*part = power.energy.*part * voltage;
  return power;
}

}  // namespace orrery
