// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/better_hardware.h"

#include "sim/app/sweeps/workers/run_point.h"
#include "tests/properties/better_figures.h"
#include "tests/properties/random/compare.h"

namespace orrery {
Trial try_better_hardware(const RandomExperiment& experiment, Draw& draw) {
  return tried([&](Trial& trial) {
    const LoadedExperiment loaded = load_experiment(experiment.file(), experiment.assignments);
    const RunRecord before = simulate_isolated(loaded).record;
    const double factor = draw.of(std::vector{1.25, 2.0});
    const std::vector<std::string> change = {draw.of(better_figures(loaded, factor))};
    const RunRecord after = simulate_again(experiment.with(change));
    if (before.status != RunStatus::kOk || after.status != RunStatus::kOk) {
      trial.outcome = Trial::Outcome::kInfeasible;
      return;
    }
    const double most = 1 + allowed_slowdown(change.front());
    if (duration(after) <= duration(before) * most) return;
    const RandomExperiment free = experiment.with(without_cap(loaded.as<MachineExperiment>()));
    const double free_before = duration(simulate_again(free));
    const double free_after = duration(simulate_again(free.with(change)));
    const bool excused = !may_be_left_unused(change.front()) ||
                         duration(after) <= duration(before) * (1 + kSlowerUnderCap);
    if (excused && free_after <= free_before * most) return;
    trial.violations.push_back(
        {"better hardware is not slower",
         figures("before", duration(before), "after", duration(after)) +
             figures("; without a cap before", free_before, "after", free_after),
         change});
  });
}

}  // namespace orrery
