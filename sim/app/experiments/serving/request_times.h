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

inline constexpr double kMs = 1e3;

/// Declares a metric of serving alone.
DeclaredMetric served_metric(const char* name, const char* unit, const char* meaning,
                             Follows follows = Follows::kNothing);

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

/// What was answered in some time.
struct Rates {
  double requests = 0, good = 0;  ///< good: those that kept all bounds
  double output = 0, tokens = 0;  ///< tokens: of prompts too
  double seconds = 0;
};

/// Metrics of requests and tokens per time, of a whole run or of a part of it.
class RateMetrics {
 public:
  /// @param prefix of all names: "steady_"
  /// @param over the time: "over the duration"
  /// @param each what follows of figures of an accelerator
  /// @param good meaning of the goodput
  /// @param request whose mean time per token counts
  RateMetrics(const std::string& prefix, const std::string& over, const std::string& each,
              const std::string& good, const std::string& request);
  void report(const Rates& rates, RunRecord& record) const;
  /// For each accelerator, and for each user by the mean time per further token, which is there.
  void report_shares(const Rates& rates, double accelerators, RunRecord& record) const;

 private:
  std::string mean_tpot_;
  DeclaredMetric requests_, good_, output_, tokens_, output_each_, tokens_each_, output_per_user_;
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

}  // namespace orrery
