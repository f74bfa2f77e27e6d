// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/model_step.h"
#include "sim/app/pricing/intervals.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "workloads/statistics.h"

namespace orrery {
namespace {

/// Time that the rank which ends last spends on the given blocks, waits for bytes included, bubbles
/// not.
Seconds time_in(const ReplayResult& replay, const std::vector<BlockId>& blocks) {
  const RoleResult& role = replay.roles[static_cast<std::size_t>(replay.last_role)];
  Picoseconds total = 0;
  for (const BlockId block : blocks) total += role.block_time.at(block);
  return to_seconds(total);
}

}  // namespace

void run_training(const Experiment& experiment, const SimulateOptions& options, RunRecord& record) {
  const LlmConfig model = experiment.model.build();
  const TrainingConfig training = training_config(experiment);
  require_supported(model, training);
  if (!check_memory(experiment, training_memory(model, training), record)) return;

  TrainingProgram built = build_training(model, training);
  ModelStep step;
  step.program = std::move(built.program);
  step.tokens = static_cast<double>(training.global_batch * training.sequence);
  step.model_flops = model_flops(model, training);
  const auto model_of_kernels = kernel_model(experiment, options.tiles);
  const StepOutcome outcome = replay_step(experiment, *model_of_kernels, step.program, options);
  report_step(experiment, step, outcome, record);

  const auto stage = static_cast<std::size_t>(outcome.replay.last_role);
  const Seconds forward = time_in(outcome.replay, built.forward[stage]);
  const Seconds backward = time_in(outcome.replay, built.backward[stage]);
  add_metric(record, "forward_time_s", forward.base());
  add_metric(record, "backward_time_s", backward.base());
  add_metric(
      record, "flops_per_s_per_accelerator",
      step.model_flops.base() / to_seconds(outcome.replay.end).base() / experiment.accelerators());
  report_trust(experiment, *model_of_kernels, step.program, outcome, record);
  if (record.find("step_time_s")->interval) {
    const auto draws = [&](const std::vector<BlockId>& blocks, Seconds time) {
      return block_draws(experiment, *model_of_kernels, step.program, outcome, blocks, time);
    };
    add_interval(record, "forward_time_s", draws(built.forward[stage], forward));
    add_interval(record, "backward_time_s", draws(built.backward[stage], backward));
  }
}

}  // namespace orrery
