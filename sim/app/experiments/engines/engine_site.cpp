// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/engines/engine_site.h"

#include <algorithm>
#include <array>

#include "workloads/software/engine_switches.h"

namespace orrery {
namespace {

bool has_states(const LlmConfig& llm) {
  constexpr std::array kRecurrent = {
      MixerKind::kMamba1,  MixerKind::kMamba2,     MixerKind::kDeltaNet,      MixerKind::kKimiDelta,
      MixerKind::kTimeMix, MixerKind::kChannelMix, MixerKind::kMambaAttention};
  return std::ranges::any_of(kRecurrent, [&](MixerKind mixer) { return llm.has(mixer); });
}

bool built(const ModelConfig& model, bool (*is)(const LlmConfig&)) {
  try {
    return is(model.build());
  } catch (const config::ConfigError&) {
    return false;  // reported where it is built
  }
}

}  // namespace

EngineSite engine_site(const AcceleratorConfig& accelerator, const ParallelConfig& parallel) {
  EngineSite site;
  site.memory = accelerator.memory.capacity.value / accelerator.dies;
  site.device = accelerator.name;
  site.architecture = accelerator.architecture;
  site.tp = parallel.tp;
  site.pp = parallel.pp;
  site.dp = parallel.dp;
  return site;
}

EngineSite engine_site(const AcceleratorConfig& accelerator, const ParallelConfig& parallel,
                       const ModelConfig& model,
                       const std::optional<SpeculativeConfig>& speculative) {
  EngineSite site = engine_site(accelerator, parallel);
  if (speculative) {
    for (const auto& [method, name] : config::EnumNames<SpeculativeMethod>::values)
      if (method == speculative->method) site.speculation = name;
  }
  site.recurrent = [&model] { return built(model, has_states); };
  site.experts = [&model] {
    return built(model, [](const LlmConfig& llm) { return llm.has_moe(); });
  };
  return site;
}

config::OneOf<SchedulerConfig> measured_engine(std::string engine, const std::string& version,
                                               const EngineSite& site) {
  if (engine == "trtllm") engine = "tensorrt_llm";
  config::OneOf<SchedulerConfig> measured;
  if (!EngineVersion::of(version) || engine_releases(engine).empty()) return measured;
  config::Node node = config::Node::map({});
  node.set("kind", config::Node::scalar(engine, {}), {});
  node.set("version", config::Node::scalar(version, {}), {});
  config::Diagnostics ignored;  // warnings of versions newer than those that are known
  const config::Record& record = *SchedulerConfig::choices().record_of(node);
  node = config::complete(node, record, ignored, config::default_library());
  void* object = config::type_of<config::OneOf<SchedulerConfig>>().choose(&measured, engine);
  config::fill(object, node, record, ignored);
  follow_release(measured, site, node, ignored);
  return measured;
}

void use_kernels(const SchedulerConfig& engine, InferenceConfig& config) {
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
