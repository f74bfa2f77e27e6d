// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/random/fleets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/app/experiments/serving.h"

namespace orrery {
namespace {

double value_of(const RunRecord& record, const std::string& metric) {
  const Metric* found = record.find(metric);
  return found == nullptr ? std::nan("") : found->value;
}

RunRecord run(const RandomExperiment& experiment, const ServingFleet& fleet) {
  const LoadedExperiment loaded = load_experiment(experiment.file(), experiment.assignments);
  RunRecord record;
  loaded.as<ServingExperiment>().serve(fleet, record);
  return record;
}

ServingFleet fleet_of(const RandomExperiment& experiment) {
  return load_experiment(experiment.file(), experiment.assignments).as<ServingExperiment>().fleet();
}

RandomExperiment routed(const RandomExperiment& experiment, const std::string& router, int seed) {
  return experiment.with(
      {"serving.router=" + router, "serving.workload.seed=" + std::to_string(seed)});
}

constexpr std::array<const char*, 2> kTtft = {"mean_ttft_ms", "p99_ttft_ms"};

/// What a run says of times to the first token, in ms.
struct Ttft {
  std::array<double, 2> values{};  ///< mean and p99, as kTtft
  double iteration = 0;            ///< a request that meets a busy replica waits for it, at most
  double busy = 0;                 ///< share of the time in which replicas were busy
};

Ttft ttft_of(const RandomExperiment& experiment, const ServingFleet& fleet) {
  const RunRecord record = run(experiment, fleet);
  return {{value_of(record, kTtft[0]), value_of(record, kTtft[1])},
          value_of(record, "mean_itl_ms"),
          value_of(record, "busy_share")};
}

/// How much longer a router makes requests wait. Who spreads them evenly leaves fewer replicas
/// idle; a request that meets a busy replica waits for the iteration that runs there, and one that
/// meets an idle one does not. That wait is no queue: it does not count where the mean is compared.
double later(const Ttft& router, const Ttft& other, std::size_t which) {
  const double queued_and_run = router.values[which] - other.values[which];
  const double more_often_busy = std::max(0.0, router.busy - other.busy);
  return which == 0 ? queued_and_run - more_often_busy * router.iteration : queued_and_run;
}

/// Share of the other's TTFT by which a router that counts requests may be above a blind one. It
/// does not see how far their prefills are: vLLM's cost of an instance in its last chunk that also
/// decodes a request is 5, of one that has just begun a prefill 4, and a router that takes the one
/// chosen longest ago is right there (by 0.3 % in the only fleet of 3,000 where it showed).
constexpr double kUnseenPrefills = 0.01;

/// Lower end of the 95 % interval of a mean, two-sided.
double lower_end(const std::vector<double>& values) {
  const double student = values.size() <= 10 ? 2.262 : 2.093;  // 9 degrees of freedom; 19 and more
  const auto count = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / count;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return mean - student * std::sqrt(squares / (count - 1) / count);
}

/// Whether a router's TTFT is above that of another with some seeds.
bool above(const RandomExperiment& experiment, const ServingFleet& fleet, const std::string& router,
           const std::string& other, std::size_t which, int first, int count) {
  std::vector<double> differences;
  for (int seed = first; seed < first + count; ++seed) {
    const Ttft own = ttft_of(routed(experiment, router, seed), fleet);
    const Ttft blind = ttft_of(routed(experiment, other, seed), fleet);
    differences.push_back(later(own, blind, which) - kUnseenPrefills * blind.values[which]);
  }
  return lower_end(differences) > 0;
}

void compare_routers(const RandomExperiment& experiment, const ServingFleet& fleet,
                     const std::string& other, Trial& trial) {
  for (const char* router : {"least_loaded", "kv_aware", "prefix_aware"}) {
    for (std::size_t which = 0; which < kTtft.size(); ++which) {
      const auto breaks = [&](int first, int count) {
        return above(experiment, fleet, router, other, which, first, count);
      };
      if (breaks(0, 10) && breaks(10, 20) && breaks(30, 60))
        trial.violations.push_back({std::string(router) + " is not above " + other,
                                    kTtft[which],
                                    {"serving.router=" + std::string(router)}});
    }
  }
}

void require_conservation(const RunRecord& record, double requests, Trial& trial) {
  const auto require = [&](bool holds, const char* law) {
    if (!holds) trial.violations.push_back({law, "", {}});
  };
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); };
  const double duration = value_of(record, "duration_s");
  require(value_of(record, "completed") == requests, "all requests are answered");
  require(same(value_of(record, "request_throughput") * duration, requests),
          "throughput is requests over time");
  require(same(value_of(record, "average_power_w") * duration, value_of(record, "energy_j")),
          "energy is power times time");
  for (const std::string time : {"ttft", "tpot", "itl", "e2el"}) {
    double before = 0;
    for (const char* share : {"median_", "p90_", "p95_", "p99_"}) {
      const double at = value_of(record, share + time + "_ms");
      require(std::isnan(at) || at >= before, "quantiles stand in order");
      before = at;
    }
  }
}

}  // namespace

RandomExperiment draw_fleet(Draw& draw) {
  RandomExperiment e{"serving", {}};
  e.assignments = {
      "model=" + draw.of({"llama_3_1_8b", "qwen3_8b", "qwen3_32b"}),
      "serving.fleet.0.system=" + draw.of({"dgx_a100", "dgx_h100", "dgx_h200", "dgx_b200"}),
      "serving.fleet.0.parallel={tp: " + std::to_string(draw.power(1, 4)) + "}",
      "serving.fleet.0.engine.kind=" + draw.of({"vllm", "vllm", "sglang", "tensorrt_llm"}),
      "serving.workload.input=" + std::to_string(draw.spread(100, 4000)),
      "serving.workload.output=" + std::to_string(draw.spread(4, 200))};
  const RandomExperiment flooded = e.with({"serving.workload.rate=1000 /s"});
  const double alone = value_of(run(flooded, fleet_of(flooded)), "request_throughput");
  const double load = 0.05 * std::pow(24, static_cast<double>(draw.below(1000)) / 1000);
  const int replicas = 2 + static_cast<int>(draw.below(7));
  e.assignments.push_back("serving.fleet.0.replicas=" + std::to_string(replicas));
  e.assignments.push_back("serving.workload.rate=" + std::to_string(load * replicas * alone) +
                          " /s");
  return e;
}

Trial try_fleet(const RandomExperiment& experiment) {
  Trial trial;
  const LoadedExperiment loaded = load_experiment(experiment.file(), experiment.assignments);
  const ServingFleet fleet = loaded.as<ServingExperiment>().fleet();
  const RunRecord record = run(experiment, fleet);
  if (record.status != RunStatus::kOk) {
    trial.outcome = Trial::Outcome::kInfeasible;
    return trial;
  }
  require_conservation(
      record, static_cast<double>(loaded.as<ServingExperiment>().serving.workload->count()), trial);
  // Routers are compared in the steady state: while a fleet fills, whoever leaves a replica idle
  // has the next request start there at once.
  if (record.find("steady_duration_s") == nullptr) return trial;
  compare_routers(experiment, fleet, "random", trial);
  if (value_of(record, "busy_share") < 0.5)
    compare_routers(experiment, fleet, "round_robin", trial);
  return trial;
}

}  // namespace orrery
