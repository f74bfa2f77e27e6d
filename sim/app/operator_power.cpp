// SPDX-License-Identifier: Apache-2.0
#include "sim/app/operator_power.h"

#include <algorithm>

#include "sim/machine/clock.h"

namespace orrery {
namespace {

/// What the kernels keep busy on average; the other dies of a package do the same.
Activity activity_of(const std::vector<Kernel>& kernels, Seconds time, double dies) {
  Flops matrix, vector;
  Bytes bytes;
  for (const Kernel& kernel : kernels) {
    matrix += kernel.matrix_flops;
    vector += kernel.vector_flops;
    bytes += kernel.read + kernel.written;
  }
  Activity activity;
  activity.precision = kernels.front().precision;
  activity.matrix = matrix / time * dies;
  activity.vector = vector / time * dies;
  activity.memory = bytes / time * dies;
  activity.with_clock = false;  // these are the rates at whatever clock it is
  return activity;
}

}  // namespace

OperatorPower operator_power(const std::vector<Kernel>& kernels,
                             const AcceleratorConfig& accelerator, const KernelModel& model,
                             Seconds time) {
  AcceleratorConfig boosted = accelerator;
  boosted.power.state = PowerState::kBoost;
  boosted.power.response.value = Seconds(1e6);
  Seconds shortest;
  for (const Kernel& kernel : kernels) shortest += to_seconds(model.cost(kernel, boosted).duration);
  const Activity activity = activity_of(kernels, time, accelerator.dies);
  const Hertz boost = boost_clock(accelerator);
  double share = std::min(1.0, shortest / time);
  if (accelerator.power.state != PowerState::kBoost)
    share = std::min(share, sustained_clock(accelerator, activity).clock / boost);
  OperatorPower power{boost * share, kernel_energy(kernels, accelerator, time)};
  const double voltage = energy_of_voltage(accelerator, activity.precision, share);
  power.energy.matrix = power.energy.matrix * voltage;
  power.energy.vector = power.energy.vector * voltage;
  return power;
}

}  // namespace orrery
