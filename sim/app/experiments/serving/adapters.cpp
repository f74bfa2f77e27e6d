// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/adapters.h"

#include <string>

#include "sim/app/experiments/serving/fleet.h"
#include "sim/app/experiments/serving/transfer.h"
#include "sim/config/load.h"
#include "workloads/base/require.h"
#include "workloads/steps/figures/memory.h"

namespace orrery {

AdapterRules adapter_rules(const LlmConfig& llm, const ServingGroup& group) {
  AdapterRules rules;
  if (!group.lora) return rules;
  const AcceleratorConfig& accelerator = group.system.accelerator;
  const BytesPerSecond link = accelerator.host_link.bandwidth.value / accelerator.dies;
  const InferenceConfig step = serving_step(group);
  rules.slots = group.lora->max_loras;
  rules.load = Seconds(kHostLatency);
  for (int stage = 0; stage < group.parallel.pp; ++stage)
    rules.load += adapter_bytes(llm, step, stage) / link;
  return rules;
}

void require_adapters(const ServingConfig& serving) {
  const bool asked = serving.workload->adapters.has_value();
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    const std::string path = group_path(i);
    require(!asked || group.lora, {"serving.workload.adapters", path},
            "requests ask for adapters, and '" + group.name + "' has no slots for any",
            {{}, {path + ".lora: {max_loras: 8, max_lora_rank: 16}"}});
    if (!group.lora) continue;
    require(group.engine->serves_adapters(), {path + ".lora"},
            "which requests with adapters share an iteration is known of vllm alone, not of " +
                group.engine->kind,
            {"vllm", {}});
    require(group.system.accelerator.host_link.bandwidth.value.base() > 0, {path + ".lora"},
            group.system.name + " does not tell the bandwidth to its hosts, where adapters are");
  }
}

void warn_of_idle_slots(const ServingConfig& serving, const config::Node& node,
                        config::Diagnostics& diagnostics) {
  if (serving.workload->adapters) return;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    if (!serving.fleet[i].lora) continue;
    const config::KeyError idle(group_path(i, "lora"),
                                "slots for adapters, which no request asks for",
                                {{}, {"serving.workload.adapters: {count: 8}"}});
    config::report(idle, node, diagnostics, config::Diagnostic::Severity::kWarning);
  }
}

}  // namespace orrery
