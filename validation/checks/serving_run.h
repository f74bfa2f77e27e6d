// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/serving.h"
#include "sim/serving/scheduler.h"

namespace orrery {

/// A request of a measured run; times in s from the first arrival.
struct MeasuredRequest {
  Request request;
  double first_token = 0, last_token = 0;
};

/// A measured run of vLLM with a record of every request, as LLMServingSim's benchmark writes it: a
/// folder with meta.json, config.json and requests.jsonl (plain or gzip).
struct ServingRun {
  std::string name;      ///< name of the folder
  std::string model;     ///< published name
  std::string hardware;  ///< name of the device: "RTXPRO6000"
  std::string version;   ///< version of vLLM
  /// Link between devices, as the run's description has it; none: it does not say.
  std::optional<BytesPerSecond> link_bandwidth;
  Seconds link_latency{};
  int tp = 1, dp = 1;
  bool expert_parallel = false;
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
  std::vector<MeasuredRequest> requests;  ///< requests in order of arrival
};

/// @throws config::ConfigError for what is missing, or is no such run
ServingRun read_serving_run(const std::string& folder);

/// The run's engine and hardware as an experiment in YAML, with a workload that stands for none.
/// @param model a name of the library, or {hf: PATH}
std::string run_experiment(const ServingRun& run, const std::string& model);

/// Times of requests, in ms.
struct ServedTimes {
  std::vector<double> ttft, tpot, e2el;  ///< times, ascending
};
ServedTimes measured_times(const ServingRun& run);

/// The requests of the run on a fleet.
/// @param pricer of iterations; null: those of the fleet
/// @param host of the engine; none: as configured
ServedTimes served_times(const ServingRun& run, const ServingExperiment& experiment,
                         const ServingFleet& fleet, IterationPricer* pricer = nullptr,
                         const std::optional<HostCosts>& host = std::nullopt);

}  // namespace orrery
