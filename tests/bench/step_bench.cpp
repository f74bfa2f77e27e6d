// SPDX-License-Identifier: Apache-2.0
// Steps of inference priced without a graph, asked by a loop of continuous batching over a trace.
#include <memory>
#include <string>
#include <utility>

#include "sim/app/pricing/step_pricer.h"
#include "sim/config/load.h"
#include "tests/bench/chunked_prefill.h"
#include "tests/bench/contest.h"
#include "tests/bench/contestants.h"
#include "workloads/models/config/model_config.h"

namespace orrery::bench {
namespace {

template <class T>
T library(const char* kind, const std::string& name) {
  const config::Library& files = config::default_library();
  return config::load<T>(files.locate(kind, name, ""), files, kind);
}

std::unique_ptr<StepPricer> pricer(const char* model, const char* system, ParallelConfig parallel) {
  InferenceConfig plan;
  plan.parallel = parallel;
  plan.precision = Precision::kFp8;
  auto machine = std::make_shared<const Machine>(library<SystemConfig>("systems", system), 1);
  return std::make_unique<StepPricer>(step_machine(std::move(machine)),
                                      library<ModelConfig>("models", model).build(), plan);
}

Asked llama() {
  const auto steps = pricer("llama_3_1_8b", "dgx_h100", {});
  return ask(*steps, {});
}

Asked deepseek() {
  const auto steps = pricer("deepseek_v3", "gb200_nvl72", {.tp = 1, .dp = 72, .ep = 72});
  return ask(*steps, {});
}

void add_model(const std::string& name, bool guide, Asked (*run)()) {
  add_contestant("step/" + name + "/hit", [run] {
    const Asked asked = run();
    return Sample{asked.hit_seconds / asked.hits, 0, asked.hits / (asked.hits + asked.misses)};
  });
  add_contestant("step/" + name + "/miss", [run] {
    const Asked asked = run();
    return Sample{asked.miss_seconds / asked.misses, 0, asked.longest_miss};
  });
  const auto compare = [guide](const char* id, const std::string& text, const std::string& of,
                               Quantity quantity, Limit limit, double demand) {
    add_comparison({id, text, of, "", quantity, limit, demand, guide});
  };
  const std::string of = "step/" + name;
  compare("S1", "a step whose prices are there, " + name + " [s]", of + "/hit", Quantity::kSeconds,
          Limit::kAtMost, 1e-6);
  compare("S2", "a step that needs prices, " + name + " [s]", of + "/miss", Quantity::kSeconds,
          Limit::kAtMost, 1e-3);
  compare("S3", "share of the former of a trace of 10,000 requests, " + name, of + "/hit",
          Quantity::kCount, Limit::kAtLeast, 0.99);
}

}  // namespace

void add_step_contest() {
  add_model("llama", false, llama);
  add_model("deepseek", true, deepseek);
}

}  // namespace orrery::bench
