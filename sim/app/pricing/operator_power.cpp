// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/operator_power.h"

#include <utility>

#include "sim/app/pricing/power_balance.h"
#include "sim/app/pricing/power_trace.h"
#include "sim/machine/clock.h"

namespace orrery {
namespace {

/// The most that a window of the kernels averages, one after the other without end.
Watts window_power(const std::vector<Kernel>& kernels, const std::vector<KernelCost>& costs,
                   const AcceleratorConfig& accelerator) {
  PowerTrace trace(run_energies(kernels, costs, accelerator), {}, 1,
                   accelerator.power.response.value);
  Picoseconds now = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Picoseconds end = checked_add(now, costs[i].duration);
    trace.kernel_ran(0, static_cast<KernelId>(i), now, end);
    now = end;
  }
  return accelerator.power.floor() + trace.highest(now) * static_cast<double>(accelerator.dies);
}

}  // namespace

OperatorPower settle_operator(const std::vector<Kernel>& kernels,
                              const AcceleratorConfig& accelerator, PowerState state,
                              const KernelModel& model) {
  std::vector<KernelCost> costs;
  costs.reserve(kernels.size());
  const AcceleratorConfig priced = priced_accelerator(accelerator, state);
  const auto prices = model.on(priced);
  for (const Kernel& kernel : kernels) costs.push_back(prices->cost(kernel));
  if (state == PowerState::kSteady) {
    const SteadyClock steady(kernels, accelerator, costs);
    steady_share(accelerator.power, steady.highest(), [&](double share) {
      costs = steady.at(share);
      return window_power(kernels, costs, accelerator);
    });
  } else {
    balance_burst(kernels, accelerator, costs);
  }
  Seconds time, at_boost;
  for (const KernelCost& cost : costs) {
    const Seconds duration = to_seconds(cost.duration);
    time += duration;
    at_boost += duration * cost.clock;
  }
  const EnergyUse energy = kernel_energy(kernels, costs, accelerator);
  return {std::move(costs), boost_clock(accelerator) * (time > Seconds(0) ? at_boost / time : 1),
          energy};
}

}  // namespace orrery
