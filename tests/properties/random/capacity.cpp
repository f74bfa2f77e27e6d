// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/capacity.h"

#include <cmath>

#include "sim/app/experiments/serving.h"
#include "sim/app/questions/find_capacity.h"
#include "sim/units/text.h"
#include "tests/properties/random/compare.h"

namespace orrery {
namespace {

constexpr double kTooMuch = 1.2;  ///< times the rate that is found

/// Milliseconds of a quantile in the steady window; of the whole run if there is none.
double steady_ms(const RunRecord& record, const std::string& name) {
  const double steady = metric(record, "steady_" + name);
  return std::isnan(steady) ? metric(record, name) : steady;
}

/// The rate by itself, outside of the search, with as many requests as the search took.
void require_bounds(const RandomExperiment& fleet, const CapacityTrial& found, Trial& trial) {
  const RandomExperiment at_rate =
      fleet.with({"serving.workload.rate=" + print_number(found.value) + " /s",
                  "serving.workload.requests=" + std::to_string(std::llround(found.requests))});
  const RunRecord record = simulate_again(at_rate);
  const LoadedExperiment loaded = load_experiment(fleet.file(), fleet.assignments);
  const ServingSlo& slo = loaded.as<ServingExperiment>().serving.slo;
  const auto require = [&](const std::optional<Seconds>& bound, const char* name) {
    const double taken = steady_ms(record, name), most = bound->base() * 1e3;
    if (!(taken <= most))
      trial.violations.push_back({"the rate that is found keeps its bounds",
                                  figures(name, taken, "bound", most),
                                  {at_rate.assignments.end()[-2], at_rate.assignments.back()}});
  };
  require(slo.ttft_p99, "p99_ttft_ms");
  require(slo.tpot_p99, "p99_tpot_ms");
}

}  // namespace

RandomExperiment draw_capacity(Draw& draw) {
  const std::string replicas = std::to_string(1 + draw.below(3));
  return {"serving",
          {"model=" + draw.of({"llama_3_1_8b", "qwen3_8b"}),
           "serving.fleet.0.system=" + draw.of({"dgx_a100", "dgx_h100", "dgx_h200", "dgx_b200"}),
           "serving.fleet.0.parallel={tp: " + std::to_string(draw.power(1, 2)) + "}",
           "serving.fleet.0.engine.kind=" + draw.of({"vllm", "sglang", "tensorrt_llm"}),
           "serving.fleet.0.replicas=" + replicas,
           "serving.workload.input=" + std::to_string(draw.spread(100, 2000)),
           "serving.workload.output=" + std::to_string(draw.spread(4, 64)),
           "serving.slo.ttft_p99=" + std::to_string(draw.spread(200, 5000)) + " ms",
           "serving.slo.tpot_p99=" + std::to_string(draw.spread(15, 100)) + " ms"}};
}

Trial try_capacity(const RandomExperiment& fleet) {
  Trial trial;
  CapacitySearch search(fleet.file(), fleet.assignments, Capacity::kMaxRate);
  std::vector<CapacityTrial> tried;
  const CapacityAnswer answer = search.find([&](const CapacityTrial& t) { tried.push_back(t); });
  if (!answer.value) {
    trial.outcome = Trial::Outcome::kInfeasible;
    return trial;
  }
  for (const CapacityTrial& t : tried)
    if (t.value == *answer.value) require_bounds(fleet, t, trial);
  const std::size_t before = tried.size();
  search.seeds_that_hold(kTooMuch * *answer.value);
  if (tried.size() > before && tried[before].holds())  // the first is of the seed of the search
    trial.violations.push_back(
        {"1.2 times the rate that is found does not keep its bounds",
         figures("found", *answer.value, "holds", tried[before].value),
         {"serving.workload.rate=" + print_number(tried[before].value) + " /s"}});
  return trial;
}

}  // namespace orrery
