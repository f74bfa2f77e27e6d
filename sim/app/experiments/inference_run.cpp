// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/model_step.h"
#include "sim/app/pricing/kernel_pricing.h"
#include "workloads/statistics.h"

namespace orrery {

void run_inference(const Experiment& experiment, const SimulateOptions& options,
                   RunRecord& record) {
  const LlmConfig model = experiment.model.build();
  const InferenceConfig inference = inference_config(experiment);
  require_supported(model, inference);
  if (!check_memory(experiment, inference_memory(model, inference), record)) return;

  ModelStep step;
  step.program = build_inference(model, inference);
  const double sequences = static_cast<double>(inference.micro_batch * inference.parallel.dp);
  // A decode step yields one token a sequence, a prefill works through the whole prompt.
  step.tokens = sequences * static_cast<double>(inference.sequence);
  step.model_flops = model_flops(model, inference);
  const auto model_of_kernels = kernel_model(experiment, options.tiles);
  const StepOutcome outcome = replay_step(experiment, *model_of_kernels, step.program, options);
  report_step(experiment, step, outcome, record);
  add_metric(record, "tokens_per_s_per_user",
             static_cast<double>(inference.sequence) / to_seconds(outcome.replay.end).base());
  report_trust(experiment, *model_of_kernels, step.program, outcome, record);
}

}  // namespace orrery
