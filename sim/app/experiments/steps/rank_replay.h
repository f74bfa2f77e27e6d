// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/experiments/steps/step_experiment.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/app/pricing/pricing.h"
#include "sim/replay/replay.h"
#include "sim/results/run_record.h"

namespace orrery {

/// Steps of which every rank was replayed on its own.
struct RankSteps {
  ReplayResult middle;             ///< the step with the median time (the lower one of two)
  std::vector<Picoseconds> times;  ///< times of all steps, in order; none where ranks are folded
};

/// Replays `experiment.steps` steps, rank by rank and with its noise, at the prices that the folded
/// program has. Steps that nothing tells apart are replayed once.
/// @param options with slowdowns, topology and timeline (of the last step)
RankSteps replay_ranks(const StepExperiment& experiment, const Program& program,
                       const PricedProgram& priced, const MachineNetwork& network,
                       ReplayOptions options);

/// All numbers of an experiment that such replays depend on beside prices, to compare.
std::vector<double> rank_figures(const StepExperiment& experiment);

/// Adds how many ranks and operators were replayed, and quantiles of the steps' times; nothing
/// where ranks are folded.
void report_ranks(const StepExperiment& experiment, const RankSteps& steps, RunRecord& record);

}  // namespace orrery
