// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/system_config.h"
#include "sim/serving/request_source.h"
#include "sim/serving/scheduler.h"
#include "workloads/llm/enum_names.h"
#include "workloads/llm/llm_config.h"
#include "workloads/operators/cache_format.h"
#include "workloads/parallelism/parallel_config.h"

namespace orrery {

/// Replicas of one kind in a fleet: each is a model on ranks of a system of its own.
struct ServingGroup {
  std::string name = "group";
  SystemConfig system;
  int nodes = 1;     ///< copies of the system for each replica
  int replicas = 1;  ///< number of instances
  ParallelConfig parallel;
  Precision precision = Precision::kBf16;
  CacheFormat kv_precision = CacheFormat::kBf16;
  config::OneOf<SchedulerConfig> engine;

  /// Accelerators of a replica that are used (a rank is a die).
  double accelerators() const {
    return static_cast<double>(parallel.ranks()) / system.accelerator.dies;
  }
  static const config::Schema<ServingGroup>& schema();
};

/// What users were promised: times that a share of all requests must keep.
struct ServingSlo {
  std::optional<Seconds> ttft, tpot, e2el;  ///< bounds of each request, for goodput
  std::optional<Seconds> ttft_p99, tpot_p99, e2el_p99;

  bool empty() const { return !(ttft || tpot || e2el || ttft_p99 || tpot_p99 || e2el_p99); }
  /// The bound of a request: its own, or that of the 99th percentile.
  static std::optional<Seconds> bound(const std::optional<Seconds>& each,
                                      const std::optional<Seconds>& p99) {
    return each ? each : p99;
  }
  static const config::Schema<ServingSlo>& schema();
};

/// Everything under `serving`.
struct ServingConfig {
  config::OneOf<RequestSourceConfig> workload;
  std::vector<ServingGroup> fleet;
  std::string router = "least_loaded";
  ServingSlo slo;
  static const config::Schema<ServingConfig>& schema();
};

}  // namespace orrery
