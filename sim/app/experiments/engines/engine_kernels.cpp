// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/engines/engine_kernels.h"

#include "workloads/software/engine_switches.h"

namespace orrery {
void use_kernels(const SchedulerConfig& engine, InferenceConfig& config) {
  config.all_reduce_experts = true;
  config.kernels = engine.kernels;
  // SGLang runs TensorRT-LLM's experts where tensor cores scale blocks, with no shared one among
  // them (server_args.py).
  if (config.mx_products) {
    config.kernels.set(kSharesAsRouted, false);
    if (config.kernels.experts != ExpertKernels::kMarlin)
      config.kernels.experts = ExpertKernels::kMeasured;
  }
  if (engine.kernels.on(kAllReduceNorm)) config.normed_all_reduce = engine.all_reduce.fused;
}

EngineAllReduce all_reduce_rules(const SchedulerConfig& engine, const InferenceConfig& config) {
  EngineAllReduce rules = engine.all_reduce;
  rules.fused = config.normed_all_reduce;
  return rules;
}

}  // namespace orrery
