// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/app/experiments/serving/config.h"
#include "sim/results/metric_table.h"
#include "sim/results/run_record.h"
#include "sim/serving/serving_log.h"

namespace orrery {

/// Milliseconds in a second.
inline constexpr double kMs = 1e3;

/// Metrics for the mean and the percentiles of a time, in ms.
class TimeMetrics {
 public:
  /// @param prefix of all names: "steady_"
  /// @param name of the time: "ttft"
  /// @param what it measures, for the help
  TimeMetrics(const std::string& name, const std::string& what, const std::string& prefix = {});

  /// @param at the value, in ms, below which a share lies
  void report(double mean, const std::function<double(double share)>& at, RunRecord& record) const;
  /// Nothing where there are no times.
  void report(const Histogram& times, RunRecord& record) const;

 private:
  DeclaredMetric mean_;
  std::array<DeclaredMetric, 4> rest_;
};

/// The times of a request that users see: metrics of all requests, or of those in a part of a run.
struct UserTimeMetrics {
  explicit UserTimeMetrics(const std::string& prefix);
  TimeMetrics ttft, tpot, itl, e2el;
};

/// A time of every request, in ms.
struct Times {
  std::vector<double> values;

  void sort();
  /// Nothing where there are none. Sorted before.
  void report(const TimeMetrics& metrics, RunRecord& record) const;
  double p99() const { return quantile(values, 0.99); }
};

/// Times of requests, how many keep all bounds, and their sums.
struct RequestTimes {
  Times ttft, tpot, e2el, urgent;  ///< urgent: TTFT of requests with priority 0
  std::int64_t good = 0, prompt = 0, output = 0, preemptions = 0, found = 0;

  /// @param counts chooses requests; empty: all
  RequestTimes(const ServingLog& log, const ServingSlo& slo,
               const std::function<bool(const ServedRequest&)>& counts = {});
  /// Whether the 99th percentiles keep their bounds.
  bool meets(const ServingSlo& slo) const;
  void report(const UserTimeMetrics& metrics, const Histogram& gaps, RunRecord& record) const;
};

/// Whether a request keeps all bounds of requests.
bool is_good(const ServedRequest& answer, const ServingSlo& slo);

}  // namespace orrery
