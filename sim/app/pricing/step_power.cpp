// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_power.h"

#include <algorithm>

#include "sim/app/pricing/power_balance.h"
#include "sim/app/pricing/power_trace.h"
#include "sim/graph/executions.h"
#include "sim/machine/clock.h"

namespace orrery {
namespace {

/// Energy of each transfer, on one of its ranks.
std::vector<Joules> transfer_energies(const Program& program, const PricedProgram& priced,
                                      const AcceleratorConfig& accelerator) {
  std::vector<Joules> energies;
  for (std::size_t id = 0; id < program.transfers.size(); ++id) {
    std::size_t ranks = 0;
    for (const std::vector<int>& group : program.transfers[id].groups) ranks += group.size();
    const Joules all = transfer_energy(priced.transfers[id], accelerator).total();
    energies.push_back(all / static_cast<double>(std::max<std::size_t>(1, ranks)));
  }
  return energies;
}

Hertz mean_clock(const Program& program, const PricedProgram& priced, const ReplayResult& result,
                 const AcceleratorConfig& accelerator) {
  const Role& role = program.roles[static_cast<std::size_t>(result.last_role)];
  const ExecutionCounts counts = count_executions(program, role);
  double time = 0, clocks = 0;
  each_run(counts.kernels, [&](std::size_t id, std::uint64_t runs) {
    const KernelCost& cost = priced.costs.kernels[id];
    const double busy = static_cast<double>(runs) * static_cast<double>(cost.duration);
    time += busy;
    clocks += busy * cost.clock;
  });
  return boost_clock(accelerator) * (time > 0 ? clocks / time : 1);
}

}  // namespace

std::vector<double> power_figures(const AcceleratorConfig& accelerator, PowerState state,
                                  const Program& program, const PricedProgram& priced) {
  const PowerConfig& power = accelerator.power;
  std::vector<double> figures = {static_cast<double>(state),
                                 power.cap().base(),
                                 power.tdp.value.base(),
                                 power.idle.value.base(),
                                 power.floor_clock.value,
                                 power.floor_voltage.value,
                                 power.response.value.base(),
                                 boost_clock(accelerator).base(),
                                 static_cast<double>(accelerator.dies)};
  for (std::size_t id = 0; id < program.kernels.size(); ++id) {
    const EnergyUse run = run_energy(program.kernels[id], priced.costs.kernels[id], accelerator);
    figures.push_back(run.core().base());
    figures.push_back(run.memory.base());
  }
  for (const Joules& energy : transfer_energies(program, priced, accelerator))
    figures.push_back(energy.base());
  return figures;
}

PowerUse replay_under_cap(const AcceleratorConfig& accelerator, PowerState state,
                          const Program& program, const ReplayOptions& options,
                          PricedProgram& priced, ReplayResult& result) {
  std::vector<KernelCost>& kernels = priced.costs.kernels;
  const std::vector<Joules> transfers = transfer_energies(program, priced, accelerator);
  ReplayOptions observed = options;
  observed.timeline = nullptr;  // of the last replay alone
  const auto run = [&] {
    PowerTrace trace(run_energies(program.kernels, kernels, accelerator), transfers,
                     program.roles.size(), accelerator.power.response.value);
    observed.observer = &trace;
    result = {};  // millions of links, not to be held beside those of the next
    result = replay(program, priced.costs, observed);
    return accelerator.power.idle.value +
           trace.highest(result.end) * static_cast<double>(accelerator.dies);
  };
  Watts window;
  if (state == PowerState::kSteady) {
    const SteadyClock steady(program.kernels, accelerator, kernels);
    steady_share(accelerator.power, steady.highest(), [&](double share) {
      kernels = steady.at(share);
      return window = run();
    });
  } else {
    balance_burst(program.kernels, accelerator, kernels);
    window = run();
  }
  if (options.timeline != nullptr) result = replay(program, priced.costs, options);
  return {mean_clock(program, priced, result, accelerator), window};
}

}  // namespace orrery
