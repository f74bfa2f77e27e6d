// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "validation/checks/engine_tables.h"
#include "validation/checks/serving_run.h"

namespace orrery {

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
