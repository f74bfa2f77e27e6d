// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/alone.h"

#include <array>
#include <cmath>

#include "sim/app/sweeps/workers/run_point.h"
#include "sim/config/output.h"
#include "tests/properties/random/compare.h"

namespace orrery {
namespace {

constexpr std::int64_t kPrompt = 512;
constexpr double kTables = 0.01;  ///< tables of steps are straight between their rows

/// Assignments of a request alone, by their places.
enum Place : std::size_t { kModel, kSystem, kPlan, kEngine };

/// A step of the request by `inference`, in ms.
double step_ms(const RandomExperiment& request, const std::vector<std::string>& phase) {
  const std::string fleet = "serving.fleet.0.";
  RandomExperiment step{"inference", {request.assignments[kModel]}};
  for (const std::size_t place : {kSystem, kPlan})
    step.assignments.push_back(request.assignments[place].substr(fleet.size()));
  const std::string& engine = request.assignments[kEngine];
  step.assignments.push_back("engine={kind: " + engine.substr(engine.find("kind: ") + 6));
  return duration(simulate_again(step.with(phase))) * 1e3;
}

}  // namespace

RandomExperiment draw_alone(Draw& draw) {
  const std::string tp = std::to_string(draw.power(1, 8));
  const std::string of_experts = draw.chance(0.3) ? ", etp: " + tp : "";
  RandomExperiment e{"serving", {}};
  e.assignments = {"model=" + draw.of(config::default_library().names("models")),
                   "serving.fleet.0.system=" + draw.of(config::default_library().names("systems")),
                   "serving.fleet.0.parallel={tp: " + tp + of_experts + "}",
                   "serving.fleet.0.engine={kind: " + draw.of({"vllm", "sglang", "tensorrt_llm"}) +
                       ", host: {}}",
                   "serving.workload={arrival: poisson, rate: 1 /s, requests: 1, input: " +
                       std::to_string(kPrompt) + ", output: 2}"};
  return e;
}

Trial try_alone(const RandomExperiment& experiment) {
  Trial trial;
  try {
    const RunRecord record = simulate_again(experiment);
    if (record.status != RunStatus::kOk) {
      trial.outcome = Trial::Outcome::kInfeasible;
      return trial;
    }
    const std::string length = std::to_string(kPrompt);
    const double prefill =
        step_ms(experiment, {"phase=prefill", "batch={micro: 1, sequence: " + length + "}"});
    const double decode =
        step_ms(experiment, {"phase=decode", "batch={micro: 1}", "kv_length=" + length});
    for (const auto& [name, step] :
         {std::pair{"mean_ttft_ms", prefill}, {"mean_tpot_ms", decode}}) {
      const double served = metric(record, name);
      if (std::isnan(served) || std::isnan(step)) continue;
      if (std::abs(served / step - 1) > kTables)
        trial.violations.push_back(
            {"a request alone takes its steps", figures(name, served, "step", step), {}});
    }
  } catch (const config::ConfigError&) {
    trial.outcome = Trial::Outcome::kRefused;
  } catch (const PointFailure& failure) {
    trial.outcome = Trial::Outcome::kRefused;
    if (failure.code != ExitCode::kUsage && failure.code != ExitCode::kInfeasible)
      trial.violations.push_back({"input ends as a result or refused", failure.what(), {}});
  }
  return trial;
}

}  // namespace orrery
