// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_power.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/app/pricing/power_balance.h"
#include "sim/app/pricing/power_trace.h"
#include "sim/graph/executions.h"
#include "sim/machine/clock.h"
#include "sim/network/flow_network.h"
#include "sim/replay/steady_rounds.h"

namespace orrery {
namespace {

Hertz mean_clock(const Program& program, const PricedProgram& priced, const ReplayResult& result,
                 const AcceleratorConfig& accelerator) {
  const Role& role = program.roles[static_cast<std::size_t>(result.last_role)];
  const ExecutionCounts counts = count_executions(program, role);
  double time = 0, clocks = 0;
  each_run(counts.kernels, [&](std::size_t id, std::uint64_t runs) {
    const KernelCost& cost = priced.costs.kernels[id];
    if (cost.fixed) return;
    const double busy = static_cast<double>(runs) * static_cast<double>(cost.duration);
    time += busy;
    clocks += busy * cost.clock;
  });
  return boost_clock(accelerator) * (time > 0 ? clocks / time : 1);
}

}  // namespace

std::vector<double> power_figures(const CappedDevices& devices, const Program& program,
                                  const PricedProgram& priced) {
  const AcceleratorConfig accelerator = slowest_of(devices.accelerator, devices.packages);
  const PowerConfig& power = accelerator.power;
  std::vector<double> figures = {static_cast<double>(devices.state),
                                 power.cap().base(),
                                 power.tdp.value.base(),
                                 power.floor().base(),
                                 busy_power(accelerator, 1).base(),
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

namespace {

/// Replays of a program at the clock that keeps the cap.
class CappedReplays {
 public:
  CappedReplays(const CappedDevices& devices, const CappedRun& run, PricedProgram& priced)
      : accelerator_(devices.accelerator),
        slowest_(slowest_of(devices.accelerator, devices.packages)),
        state_(devices.state),
        options_(run.options),
        priced_(priced),
        run_(run),
        uncapped_(priced.costs.kernels),
        transfers_(transfer_energies(run.program, priced, accelerator_)),
        fixed_(
            std::ranges::count_if(uncapped_, [](const KernelCost& cost) { return cost.fixed; })) {
    options_.timeline = nullptr;  // of the last replay alone
    options_.path = nullptr;
    if (!run_.replayed) options_.links = &links_.emplace(idle_links(priced.costs));
  }

  /// Sets the costs of kernels to those at the clock. @return the most that a window draws
  Watts balance(const Program& program, ReplayResult& result) {
    std::vector<KernelCost>& kernels = priced_.costs.kernels;
    if (fixed_ == std::ssize(kernels)) return drawn(accelerator_, program, result);
    if (state_ != PowerState::kSteady) {
      kernels = uncapped_;
      balance_burst(program.kernels, slowest_, kernels);
      return drawn(accelerator_, program, result);
    }
    const SteadyClock steady(program.kernels, slowest_, uncapped_);
    Watts window;
    steady_share(slowest_.power, steady.highest(), [&](double share) {
      kernels = steady.at(share);
      return window = drawn(slowest_, program, result);
    });
    // Kernels of given times have kept the cap, not that of the slowest.
    return fixed_ > 0 ? drawn(accelerator_, program, result) : window;
  }

  /// Balances a program of equal rounds, a few of which are replayed; nothing where they are
  /// not equal. Windows are those of these rounds.
  std::optional<Watts> balance(const SteadyRounds& steady, ReplayResult& result) {
    const Watts window = balance(steady.with(2 * steady.few()), result);
    const auto again = [&](std::size_t rounds) {
      return replay(steady.with(rounds), priced_.costs, options_);
    };
    std::optional<ReplayResult> all =
        steady.extrapolate(again(steady.few()), again(steady.few() + 1), result);
    if (!all) return std::nullopt;
    result = *std::move(all);
    return window;
  }

 private:
  Watts drawn(const AcceleratorConfig& device, const Program& program, ReplayResult& result) {
    PowerTrace trace(run_energies(program.kernels, priced_.costs.kernels, device), transfers_,
                     program.roles.size(), device.power.response.value);
    ReplayOptions observed = options_;
    observed.observer = &trace;
    result = {};  // millions of links, not to be held beside those of the next
    result = run_.replayed ? run_.replayed(priced_.costs, observed)
                           : replay(program, priced_.costs, observed);
    return device.power.floor() + trace.highest(result.end) * static_cast<double>(device.dies);
  }

  const AcceleratorConfig& accelerator_;
  AcceleratorConfig slowest_;  ///< the slowest accelerator, as slowest_of() has it
  PowerState state_;
  ReplayOptions options_;
  PricedProgram& priced_;
  const CappedRun& run_;
  std::vector<KernelCost> uncapped_;
  std::vector<Joules> transfers_;
  std::ptrdiff_t fixed_;              ///< kernels that keep their time
  std::optional<FlowNetwork> links_;  ///< idle: the clock changes no transfer
};

}  // namespace

PowerUse replay_under_cap(const CappedDevices& devices, const CappedRun& run, PricedProgram& priced,
                          ReplayResult& result) {
  CappedReplays replays(devices, run, priced);
  std::optional<Watts> window;
  if (!run.replayed && priced.costs.link_events.empty())
    if (const auto steady = SteadyRounds::find(run.program))
      window = replays.balance(*steady, result);
  if (!window) window = replays.balance(run.program, result);
  if (run.options.timeline != nullptr || run.options.path != nullptr)
    result = run.replayed ? run.replayed(priced.costs, run.options)
                          : replay(run.program, priced.costs, run.options);
  return {mean_clock(run.program, priced, result, devices.accelerator), *window};
}

}  // namespace orrery
