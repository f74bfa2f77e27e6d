// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/engine_kernels.h"

namespace orrery {

void use_kernels(const SchedulerConfig& engine, InferenceConfig& config) {
  config.all_reduce_experts = true;
  config.quantises_apart = !engine.quant_fusion;
  config.marlin = engine.marlin;
  config.decodes_by_stages = engine.decodes_by_stages;
  config.expert_kernels = config.mx_products ? ExpertKernels::kMeasured : engine.expert_kernels;
  // TensorRT-LLM's experts, which SGLang runs there, have no shared one among them
  // (server_args.py).
  config.shares_as_routed = engine.shares_as_routed && !config.mx_products;
  config.fused =
      engine_kernels(engine.fusions.resolved(engine.own_fusions()), engine.all_reduce.fused);
  config.fused.operators_apart = engine.operators_apart();
  config.fused.quantises_widened = engine.quantises_widened();
  config.fused.decodes_by_head = engine.decodes_by_head();
}

EngineAllReduce all_reduce_rules(const SchedulerConfig& engine, const InferenceConfig& config) {
  EngineAllReduce rules = engine.all_reduce;
  rules.fused = config.fused.allreduce_norm;
  return rules;
}

}  // namespace orrery
