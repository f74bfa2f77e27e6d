// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/app/experiments/core/play.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/steps/step_experiment.h"
#include "sim/app/pricing/engine_network.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/app/pricing/pricing.h"
#include "sim/replay/replay.h"
#include "sim/results/run_record.h"
#include "workloads/steps/figures/memory.h"

namespace orrery {

/// One step of a model, ready to be priced and replayed.
struct ModelStep {
  Program program;
  double tokens = 0;  ///< processed by the step; 0: it has none
  Flops model_flops;  ///< FLOPs without recomputation, attention counted causally
};

/// Adds peak_memory_bytes and its components; marks the record infeasible, with the shortfall, if
/// the worst stage does not fit. @return whether it fits
bool check_memory(const StepExperiment& experiment, const std::vector<MemoryUse>& stages,
                  RunRecord& record);

using Repricing = std::function<void(PricedProgram& priced)>;

/// Prices a program on the experiment's machine and replays it at the clock of the power state,
/// kernels slowed by the transfers beside them unless `contention.transfers` is off.
/// @param repricing what the software does to prices; null: nothing
StepOutcome replay_step(const StepExperiment& experiment, const KernelModel& model,
                        const Program& program, const SimulateOptions& options = {},
                        const Repricing& repricing = nullptr);

/// Adds the metrics that every step has, and the breakdown by operator class.
void report_step(const StepExperiment& experiment, const ModelStep& step,
                 const StepOutcome& outcome, RunRecord& record);

/// The links of a step's machine, and what its collectives take on them.
class StepNetwork {
 public:
  /// @param experiment has to outlive it
  explicit StepNetwork(const StepExperiment& experiment);

  const MachineNetwork& links() const { return links_; }
  /// Prices with the faults that are there from the start.
  const Network& start() const {
    return engine_ ? static_cast<const Network&>(*engine_) : links_.start();
  }

 private:
  MachineNetwork links_;
  std::optional<EngineNetwork> engine_;
};

}  // namespace orrery
