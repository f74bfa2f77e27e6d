// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/serving.h"
#include "sim/serving/scheduler.h"
#include "validation/checks/engine_tables.h"

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

/// A measured run with everything that predicts it.
class RunCase {
 public:
  /// @param model a name of the library, or {hf: PATH}
  /// @param tables folder of operator tables, "<published model>/bf16/tp<n>" below it;
  /// empty: kernels are priced by Orrery's models
  /// @throws config::ConfigError for tables that are not there
  RunCase(ServingRun run, const std::string& model, const std::string& tables);

  const ServingRun& run() const { return run_; }
  const ServedTimes& measured() const { return measured_; }
  bool from_tables() const { return tables_ != nullptr; }
  /// @param host in place of the engine's
  ServedTimes predicted(const HostCosts& host) const;
  /// What the engine's configuration says of its host, but for its time before a request waits:
  /// records begin where the engine queues a request.
  HostCosts host() const;

 private:
  ServingRun run_;
  ServedTimes measured_;
  std::shared_ptr<const ServingExperiment> experiment_;
  std::unique_ptr<ServingFleet> fleet_;
  std::unique_ptr<EngineTables> tables_;
};

/// Signed relative errors of a run's mean, P50, P90 and P99.
struct RunErrors {
  struct Of {
    double mean = 0, p50 = 0, p90 = 0, p99 = 0;
  };
  Of ttft, tpot, e2el;
};
RunErrors run_errors(const ServedTimes& measured, const ServedTimes& predicted);

/// The time of the host for each iteration with which runs come out best: the least sum of squared
/// errors of TPOT's figures.
HostCosts fitted_host(const std::vector<const RunCase*>& runs);

}  // namespace orrery
