// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/memory_laws.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "sim/app/experiments/serving.h"
#include "sim/app/experiments/training/training.h"

namespace orrery {
namespace {

/// Blocks are whole, and rounding of sizes leaves some bytes.
constexpr double kRounding = 1e-3;

std::string before_and_after(double before, double after) {
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "before %.9g, after %.9g", before, after);
  return text.data();
}

/// A second experiment whose figure must not be larger, or smaller.
struct MemoryLaw {
  const char* law;
  std::vector<std::string> set;
  bool more;  ///< the second figure must not be smaller
};

/// Compares a figure of two experiments; those that cannot be loaded are not compared.
void compare(const RandomExperiment& experiment, const MemoryLaw& law,
             const std::function<double(const RandomExperiment&)>& figure, Trial& trial) {
  try {
    const double before = figure(experiment), after = figure(experiment.with(law.set));
    const bool holds =
        law.more ? after >= before * (1 - kRounding) - 1 : after <= before * (1 + kRounding) + 1;
    if (!holds) trial.violations.push_back({law.law, before_and_after(before, after), law.set});
  } catch (const config::ConfigError&) {
    // Out of bounds: nothing to compare with.
  }
}

ServingMemory memory_of(const RandomExperiment& experiment) {
  const LoadedExperiment loaded = load_experiment(experiment.file(), experiment.assignments);
  const auto& e = loaded.as<ServingExperiment>();
  return e.fleet().memory(e.serving.fleet).front();
}

/// Requests of a length that the cache holds: tokens, and windows and states as they count.
double held(const RandomExperiment& experiment) {
  return 1e6 * memory_of(experiment).requests(8192);
}

double needed(const RandomExperiment& experiment) {
  const ServingMemory memory = memory_of(experiment);
  return (memory.weights + memory.working + memory.set_aside).base();
}

double block(const RandomExperiment& experiment) {
  const ServingMemory memory = memory_of(experiment);
  return memory.block.base() / static_cast<double>(memory.block_tokens);
}

double peak(const RandomExperiment& experiment) {
  const LoadedExperiment loaded = load_experiment(experiment.file(), experiment.assignments);
  const auto& e = loaded.as<TrainingExperiment>();
  double most = 0;
  for (const MemoryUse& stage : e.memory(e.model.build(), e.parallel))
    most = std::max(most, stage.total().base());
  return most;
}

}  // namespace

RandomExperiment draw_start(Draw& draw) {
  static const std::vector<std::string> models = config::default_library().names("models");
  const std::string key = "serving.fleet.0.";
  RandomExperiment e{"serving", {}};
  e.assignments = {
      "model=" + draw.of(models),
      key + "system=" + draw.of({"dgx_a100", "dgx_h100", "dgx_h200", "dgx_b200", "dgx_b300"}),
      key + "parallel={tp: " + std::to_string(draw.power(1, 4)) + "}"};
  const std::string seqs = std::to_string(draw.power(16, 1024));
  const std::string tokens = std::to_string(draw.power(1024, 16384));
  switch (draw.below(3)) {
    case 0:
      e.assignments.push_back(key + "engine={kind: vllm, version: \"" +
                              draw.of({"0.8", "0.11", "0.19", "0.21", "0.28"}) +
                              "\", max_num_seqs: " + seqs + ", max_num_batched_tokens: " + tokens +
                              "}");
      break;
    case 1:
      e.assignments.push_back(key + "engine={kind: sglang, version: \"" +
                              draw.of({"0.4", "0.5.10"}) + "\", max_running_requests: " + seqs +
                              ", chunked_prefill_size: " + tokens +
                              ", mem_fraction_static: 0.85, cuda_graph_max_bs: 64}");
      break;
    default:
      e.assignments.push_back(key + "engine={kind: tensorrt_llm, max_batch_size: " + seqs +
                              ", max_num_tokens: " + tokens + "}");
  }
  return e;
}

Trial try_start(const RandomExperiment& experiment) {
  Trial trial;
  try {
    const LoadedExperiment loaded = load_experiment(experiment.file(), experiment.assignments);
    const ServingMemory memory = memory_of(experiment);
    if (memory.blocks <= 0) {
      trial.outcome = Trial::Outcome::kInfeasible;
      return trial;
    }
    const ServingGroup& group = loaded.as<ServingExperiment>().serving.fleet.front();
    const std::string key = "serving.fleet.0.";
    if (const auto larger = scaled(loaded, key + "system.accelerator.memory.capacity", 1.3))
      compare(experiment, {"more memory holds no fewer tokens", {*larger}, true}, held, trial);
    compare(experiment,
            {"a cache of 8 bits holds no fewer tokens", {key + "kv_precision=fp8"}, true}, held,
            trial);
    const std::vector<std::string> twice = {key +
                                            "parallel.tp=" + std::to_string(2 * group.parallel.tp)};
    compare(experiment, {"more ranks need no more memory each", twice, false}, needed, trial);
    compare(experiment, {"more ranks cache no more of a token each", twice, false}, block, trial);
  } catch (const config::ConfigError&) {
    trial.outcome = Trial::Outcome::kRefused;
  } catch (const std::exception& error) {
    trial.violations.push_back({"a start has a memory or is refused", error.what(), {}});
  }
  return trial;
}

void inspect_memory(const RandomExperiment& experiment, const LoadedExperiment& loaded, Draw& draw,
                    Trial& trial) {
  const auto* e = dynamic_cast<const TrainingExperiment*>(&loaded.as<Experiment>());
  if (e == nullptr) return;
  const auto is = [](const char* key, std::int64_t value) {
    return std::string(key) + "=" + std::to_string(value);
  };
  std::vector<MemoryLaw> laws = {
      {"twice the tensor parallel ranks need no more memory each",
       {is("parallel.tp", 2 * e->parallel.tp), is("nodes", 2 * e->nodes)},
       false},
      {"recomputation of all needs no more memory", {"recompute=full"}, false},
      {"twice the micro-batch needs no less memory",
       {is("batch.micro", 2 * e->batch.micro), is("batch.global", 2 * e->batch.global)},
       true}};
  if (e->parallel.dp > 1 && e->parallel.zero < 3)
    laws.push_back({"a further ZeRO stage needs no more memory",
                    {is("parallel.zero", e->parallel.zero + 1)},
                    false});
  compare(experiment, draw.of(laws), peak, trial);
}

}  // namespace orrery
