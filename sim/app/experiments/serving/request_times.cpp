// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/request_times.h"

#include <algorithm>
#include <optional>

#include "sim/app/experiments/core/simulate.h"

namespace orrery {
namespace {

DeclaredMetric declare(const std::string& name, const std::string& meaning) {
  return DeclaredMetric{{name + "_ms", "ms", meaning, "serving"}};
}

DeclaredMetric rate(const std::string& name, const std::string& meaning) {
  return DeclaredMetric{{name, "1/s", meaning, "serving", Follows::kRate}};
}

double ms(Picoseconds begin, Picoseconds end) { return to_seconds(end - begin).base() * kMs; }

/// Within a bound that may not be there.
bool keeps(const std::optional<Seconds>& bound, double time_ms) {
  return !bound || time_ms <= bound->base() * kMs;
}

double ttft_of(const ServedRequest& a) { return ms(a.arrival, a.first_token); }
double e2el_of(const ServedRequest& a) { return ms(a.arrival, a.last_token); }
/// A request with one token has no further ones: vLLM's benchmark leaves it out too.
double tpot_of(const ServedRequest& a) {
  return a.output > 1 ? ms(a.first_token, a.last_token) / (a.output - 1) : 0;
}

/// Whether a request keeps all bounds of requests.
bool is_good(const ServedRequest& answer, const ServingSlo& slo) {
  return keeps(ServingSlo::bound(slo.ttft, slo.ttft_p99), ttft_of(answer)) &&
         keeps(ServingSlo::bound(slo.tpot, slo.tpot_p99), tpot_of(answer)) &&
         keeps(ServingSlo::bound(slo.e2el, slo.e2el_p99), e2el_of(answer));
}

}  // namespace

DeclaredMetric served_metric(const char* name, const char* unit, const char* meaning,
                             Follows follows) {
  return DeclaredMetric{{name, unit, meaning, "serving", follows}};
}

TimeMetrics::TimeMetrics(const std::string& name, const std::string& what,
                         const std::string& prefix)
    : mean_(declare(prefix + "mean_" + name, "mean " + what)),
      rest_{declare(prefix + "median_" + name, "median " + what),
            declare(prefix + "p90_" + name, what + ", p90"),
            declare(prefix + "p95_" + name, what + ", p95"),
            declare(prefix + "p99_" + name, what + ", p99")} {}

void TimeMetrics::report(double mean, const std::function<double(double share)>& at,
                         RunRecord& record) const {
  constexpr std::array<double, 4> kShares = {0.5, 0.9, 0.95, 0.99};
  add_metric(record, mean_, mean);
  for (std::size_t i = 0; i < kShares.size(); ++i) add_metric(record, rest_[i], at(kShares[i]));
}

void TimeMetrics::report(const Histogram& times, RunRecord& record) const {
  if (times.count() == 0) return;
  const auto in_ms = [](double picoseconds) { return picoseconds * 1e-12 * kMs; };
  report(
      in_ms(times.mean()), [&](double share) { return in_ms(times.quantile(share)); }, record);
}

UserTimeMetrics::UserTimeMetrics(const std::string& prefix)
    : ttft("ttft", "time from arrival to the first token", prefix),
      tpot("tpot", "time per further token of a request", prefix),
      itl("itl", "time between two tokens that follow each other", prefix),
      e2el("e2el", "time from arrival to the last token", prefix) {}

RateMetrics::RateMetrics(const std::string& prefix, const std::string& over,
                         const std::string& each, const std::string& good,
                         const std::string& request)
    : mean_tpot_(prefix + "mean_tpot_ms"),
      requests_(rate(prefix + "request_throughput", "requests answered " + over)),
      good_({prefix + "request_goodput", "1/s", good, "serving"}),
      output_(rate(prefix + "output_throughput", "output tokens " + over)),
      tokens_(rate(prefix + "total_token_throughput", "prompt and output tokens " + over)),
      output_each_(
          rate(prefix + "output_throughput_per_accelerator", "output tokens " + over + each)),
      tokens_each_(rate(prefix + "total_throughput_per_accelerator",
                        "prompt and output tokens " + over + each)),
      output_per_user_(rate(prefix + "output_throughput_per_user",
                            "1 over the mean time per further token of " + request)) {}

void RateMetrics::report(const Rates& rates, RunRecord& record) const {
  add_metric(record, requests_, rates.requests / rates.seconds);
  add_metric(record, good_, rates.good / rates.seconds);
  add_metric(record, output_, rates.output / rates.seconds);
  add_metric(record, tokens_, rates.tokens / rates.seconds);
}

void RateMetrics::report_shares(const Rates& rates, double accelerators, RunRecord& record) const {
  add_metric(record, output_each_, rates.output / rates.seconds / accelerators);
  add_metric(record, tokens_each_, rates.tokens / rates.seconds / accelerators);
  if (const Metric* tpot = record.find(mean_tpot_); tpot != nullptr && tpot->value > 0)
    add_metric(record, output_per_user_, kMs / tpot->value);
}

void Times::sort() { std::ranges::sort(values); }

void Times::report(const TimeMetrics& metrics, RunRecord& record) const {
  if (values.empty()) return;
  double sum = 0;
  for (const double value : values) sum += value;
  metrics.report(
      sum / static_cast<double>(values.size()),
      [this](double share) { return quantile(values, share); }, record);
}

RequestTimes::RequestTimes(const ServingLog& log, const ServingSlo& slo,
                           const std::function<bool(const ServedRequest&)>& counts) {
  for (const ServedRequest& a : log.served()) {
    if (counts && !counts(a)) continue;
    ttft.values.push_back(ttft_of(a));
    e2el.values.push_back(e2el_of(a));
    if (a.output > 1) tpot.values.push_back(tpot_of(a));
    if (a.priority == 0) urgent.values.push_back(ttft_of(a));
    good += is_good(a, slo) ? 1 : 0;
    prompt += a.prompt;
    output += a.output;
    preemptions += a.preemptions;
    found += a.found;
  }
  for (Times* times : {&ttft, &tpot, &e2el, &urgent}) times->sort();
}

bool RequestTimes::meets(const ServingSlo& slo) const {
  return keeps(slo.ttft_p99, ttft.p99()) && keeps(slo.e2el_p99, e2el.p99()) &&
         (tpot.values.empty() || keeps(slo.tpot_p99, tpot.p99()));
}

void RequestTimes::report(const UserTimeMetrics& metrics, const Histogram& gaps,
                          RunRecord& record) const {
  ttft.report(metrics.ttft, record);
  tpot.report(metrics.tpot, record);
  metrics.itl.report(gaps, record);
  e2el.report(metrics.e2el, record);
}

}  // namespace orrery
