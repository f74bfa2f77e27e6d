// SPDX-License-Identifier: Apache-2.0
// Steps of inference drawn at random, priced without and with a graph.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sim/app/experiments/core/play.h"
#include "sim/app/experiments/steps/inference.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/app/pricing/step_pricer.h"
#include "tests/properties/random/draw.h"

namespace orrery {

/// A model on a system, with a plan that it fits under.
struct SteppedPlan {
  const char* model;
  const char* system;
  int nodes;
  const char* precision;
  const char* plan;
  const char* set = nullptr;  ///< one more key
};

/// Six models on four systems, then what only experts have, then context parallel ranks.
inline const std::vector<SteppedPlan>& stepped_plans() {
  static const std::vector<SteppedPlan> plans = {
      {"llama_3_1_8b", "dgx_h100", 1, "bf16", "{tp: 1}"},
      {"llama_3_1_8b", "dgx_b200", 1, "fp8", "{tp: 2}"},
      {"llama_3_1_8b", "gb200_nvl72", 1, "bf16", "{tp: 4}"},
      {"llama_3_1_8b", "cm384", 1, "bf16", "{tp: 2}"},
      {"llama_3_1_70b", "dgx_h100", 1, "fp8", "{tp: 8}"},
      {"llama_3_1_70b", "dgx_b200", 1, "fp8", "{tp: 4, pp: 2}"},
      {"llama_3_1_70b", "gb200_nvl72", 1, "nvfp4", "{tp: 4, sp: true}"},
      {"llama_3_1_70b", "cm384", 1, "bf16", "{tp: 8}"},
      {"mixtral_8x7b", "dgx_h100", 1, "bf16", "{tp: 4, dp: 2, ep: 8}"},
      {"mixtral_8x7b", "dgx_b200", 1, "fp8", "{tp: 2, dp: 2, ep: 4}"},
      {"mixtral_8x7b", "gb200_nvl72", 1, "fp8", "{tp: 4, ep: 4}"},
      {"mixtral_8x7b", "cm384", 1, "bf16", "{tp: 8, ep: 8}"},
      {"deepseek_v3", "dgx_h100", 4, "fp8", "{tp: 1, dp: 32, ep: 32}"},
      {"deepseek_v3", "dgx_b200", 2, "fp8", "{tp: 8, dp: 2, ep: 16}"},
      {"deepseek_v3", "gb200_nvl72", 1, "fp8", "{tp: 1, dp: 72, ep: 72}"},
      {"deepseek_v3", "cm384", 1, "bf16", "{tp: 4, dp: 32, ep: 128}"},
      {"qwen3_235b_a22b", "dgx_h100", 1, "fp8", "{tp: 4, dp: 2, ep: 8}"},
      {"qwen3_235b_a22b", "dgx_b200", 1, "nvfp4", "{tp: 4, dp: 2, ep: 8}"},
      {"qwen3_235b_a22b", "gb200_nvl72", 1, "fp8", "{tp: 4, dp: 4, ep: 16}"},
      {"qwen3_235b_a22b", "cm384", 1, "bf16", "{tp: 4, dp: 8, ep: 32}"},
      {"gemma_2_9b", "dgx_h100", 1, "bf16", "{tp: 2}"},
      {"gemma_2_9b", "dgx_b200", 1, "bf16", "{tp: 1}"},
      {"gemma_2_9b", "gb200_nvl72", 1, "fp8", "{tp: 2}"},
      {"gemma_2_9b", "cm384", 1, "bf16", "{tp: 4}"},
      {"deepseek_v3", "dgx_h100", 4, "fp8", "{tp: 1, dp: 32, ep: 32}",
       "expert_routing={zipf: 0.7, balancing: eplb, redundant_experts: 32}"},
      {"qwen3_235b_a22b", "dgx_b200", 1, "fp8", "{tp: 4, dp: 2, ep: 8}",
       "expert_routing={zipf: 0.7}"},
      {"deepseek_v3", "dgx_h100", 4, "fp8", "{tp: 1, dp: 32, ep: 32}", "two_batch_overlap=true"},
      {"deepseek_v3", "gb200_nvl72", 1, "fp8", "{tp: 1, dp: 72, ep: 72}", "two_batch_overlap=true"},
      {"qwen3_235b_a22b", "dgx_h200", 2, "bf16", "{tp: 1, dp: 16, ep: 16}",
       "two_batch_overlap=true"},
      {"llama_3_1_8b", "dgx_b200", 1, "fp8", "{tp: 2, cp: 4}"},
      {"llama_3_1_70b", "gb200_nvl72", 1, "bf16", "{tp: 4, sp: true, cp: 2, pp: 2}"},
      {"qwen3_235b_a22b", "dgx_b200", 2, "fp8", "{tp: 8, dcp: 2, cp: 2, ep: 16}"},
      {"deepseek_v3", "dgx_b200", 1, "fp8", "{tp: 8, dcp: 8, ep: 8}"},
      {"deepseek_v3", "gb200_nvl72", 1, "fp8", "{tp: 4, dcp: 2, cp: 3, dp: 2, ep: 24}"},
  };
  return plans;
}

/// @param lora slots for adapters; empty: none
inline LoadedExperiment experiment_of(const SteppedPlan& plan, const std::string& lora = {},
                                      const std::string& state = {}) {
  std::vector<std::string> set = {
      std::string("system=") + plan.system,       "nodes=" + std::to_string(plan.nodes),
      std::string("model=") + plan.model,         std::string("parallel=") + plan.plan,
      std::string("precision=") + plan.precision, "kv_length=64"};
  if (plan.set != nullptr) set.emplace_back(plan.set);
  if (!state.empty()) set.push_back("system.accelerator.power.state=" + state);
  if (!lora.empty()) set.insert(set.end(), {"lora=" + lora, "adapters=1", "batch.micro=1"});
  return load_experiment(ORRERY_SOURCE_DIR "/configs/experiments/deepseek_r1_decode.yaml", set);
}

/// Chunks of prompts, and what decoding sequences have in the cache.
struct DrawnStep {
  std::vector<Chunk> chunks;
  std::vector<std::int64_t> contexts;

  BatchShape shape() const {
    BatchShape shape;
    shape.chunks = chunks;
    shape.sequences = static_cast<std::int64_t>(contexts.size());
    shape.context = std::accumulate(contexts.begin(), contexts.end(), std::int64_t{0});
    if (!contexts.empty()) shape.longest = *std::max_element(contexts.begin(), contexts.end());
    return shape;
  }
  /// The step with the contexts as they are.
  MixedBatch batch() const {
    MixedBatch batch;
    for (const Chunk& chunk : chunks)
      batch.chunks.push_back({chunk.tokens, chunk.context, 1, chunk.samples});
    for (const std::int64_t context : contexts) batch.decodes.push_back({context, 1});
    return batch;
  }
};

/// Decodes alone, prompts alone or both; contexts within a factor of some four of each other.
inline DrawnStep draw_step(Draw& draw) {
  DrawnStep step;
  const std::size_t kind = draw.below(3);
  if (kind != 1) {
    const std::int64_t sequences = draw.spread(1, 256);
    const double typical = static_cast<double>(draw.spread(64, 8192));
    for (std::int64_t i = 0; i < sequences; ++i)
      step.contexts.push_back(draw.spread(typical / 2, typical * 2));
  }
  if (kind != 0) {
    const std::size_t chunks = 1 + draw.below(3);
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::int64_t earlier = draw.chance(0.5) ? 0 : draw.spread(64, 16384);
      step.chunks.push_back({draw.spread(16, 2700), earlier, draw.chance(0.7)});
    }
  }
  return step;
}

/// Replays without a machine of modules, which a process has but once.
class PlainReplay final : public ReplayStandIn {
 public:
  ReplayOutcome replay(const ReplayInputs& inputs, const ReplayFunction& replayer) override {
    return replayer(inputs.slowdowns);
  }
};

/// A plan with both ways to the time of a step.
class SteppedMachine {
 public:
  explicit SteppedMachine(const SteppedPlan& plan, const std::string& lora = {},
                          const std::string& state = {})
      : loaded_(experiment_of(plan, lora, state)),
        experiment_(loaded_.as<InferenceExperiment>()),
        model_(experiment_.model.build()),
        kernels_(experiment_.machine().kernels({})),
        pricer_(step_machine(std::make_shared<const Machine>(experiment_.machine()), {}, true,
                             experiment_.own_all_reduces()),
                model_, experiment_.inference()) {}

  StepPricer& pricer() { return pricer_; }
  Picoseconds replayed(const Program& program) const {
    PlainReplay plain;
    SimulateOptions options;
    options.stand_in = &plain;
    return replay_step(experiment_, *kernels_, program, options).replay.end;
  }
  /// With contexts as they are.
  Program program(const DrawnStep& step) const {
    InferenceConfig config = experiment_.inference();
    config.phase = Phase::kMixed;
    config.batch = step.batch();
    return build_inference(model_, config);
  }

 private:
  LoadedExperiment loaded_;
  const InferenceExperiment& experiment_;
  LlmConfig model_;
  std::unique_ptr<KernelModel> kernels_;
  StepPricer pricer_;
};

}  // namespace orrery
