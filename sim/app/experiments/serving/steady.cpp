// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/steady.h"

#include <fmt/core.h>
#include <algorithm>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving/request_times.h"
#include "sim/results/metric_table.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

const DeclaredMetric kIsSteady = served_metric(
    "steady", "",
    "yes if requests arrive for at least three mean lifetimes of a request (from its start to its "
    "last token), 20 of them in the steady window; otherwise no, and why: there are no steady_*");
const DeclaredMetric kSteadyDuration =
    served_metric("steady_duration_s", "s",
                  "time from one lifetime of a request after the first arrival until the last "
                  "arrival, which steady_* are taken over",
                  Follows::kTime);
const DeclaredMetric kSteadyAttainment = served_metric(
    "steady_slo_attainment", "1",
    "share of the requests that arrive in the steady window and keep all bounds of serving.slo");
const RateMetrics kSteadyRates(
    "steady_", "in the steady window, over its length", " and for each accelerator",
    "requests that arrive in the steady window and keep all bounds of serving.slo, over its length",
    "a request that arrives in the steady window");
const UserTimeMetrics kSteadyTimes("steady_");

/// The window of a run, computed once.
struct Window {
  Picoseconds from = 0, until = 0;
  explicit Window(const SteadyWindow& window) : from(window.from()), until(window.until()) {}
};

/// The part of a time span that the window covers.
double share_inside(const Window& window, Picoseconds begin, Picoseconds end) {
  const Picoseconds low = std::max(begin, window.from), high = std::min(end, window.until);
  if (high <= low) return 0;
  return static_cast<double>(high - low) / static_cast<double>(end - begin);
}

bool inside(const Window& window, Picoseconds time) {
  return time > window.from && time <= window.until;
}

/// Prompt tokens inside the window; those of a request are spread from its start to its first
/// token.
double steady_prompt_tokens(const Window& window, const ServingLog& log) {
  double tokens = 0;
  for (const ServedRequest& a : log.served())
    tokens += a.prompt * share_inside(window, a.started, a.first_token);
  return tokens;
}

constexpr std::int64_t kFewestArrivals = 20;

std::int64_t arrivals_in(const SteadyWindow& steady, const ServingLog& log) {
  if (steady.empty()) return 0;
  const Window window(steady);
  return std::ranges::count_if(log.served(),
                               [&](const ServedRequest& a) { return inside(window, a.arrival); });
}

bool is_long(const SteadyWindow& window, const ServingLog& log) {
  return !window.empty() && window.horizon() >= mean_lifetime(log.served()) * kLifetimes;
}

std::string why_not(const SteadyWindow& window, const ServingLog& log) {
  if (is_long(window, log))
    return fmt::format("no: {} requests arrive in it, {} are needed", arrivals_in(window, log),
                       kFewestArrivals);
  return fmt::format("no: requests arrive for {}, three lifetimes are {}",
                     format_si(window.horizon().base(), "s"),
                     format_si(mean_lifetime(log.served()).base() * kLifetimes, "s"));
}

}  // namespace

bool is_steady(const SteadyWindow& window, const ServingLog& log) {
  return is_long(window, log) && arrivals_in(window, log) >= kFewestArrivals;
}

double steady_output_tokens(const SteadyWindow& steady, const ServingLog& log) {
  const Window window(steady);
  double tokens = 0;
  for (const ServedRequest& a : log.served())
    tokens += (inside(window, a.first_token) ? 1 : 0) +
              (a.output - 1) * share_inside(window, a.first_token, a.last_token);
  return tokens;
}

void report_steady(const ServingConfig& serving, const SteadyWindow& steady, const ServingLog& log,
                   RunRecord& record) {
  if (!is_steady(steady, log)) {
    add_label(record, kIsSteady, why_not(steady, log));
    return;
  }
  const Window window(steady);
  add_label(record, kIsSteady, "yes");
  const double length = steady.length().base();
  const auto answered = std::ranges::count_if(
      log.served(), [&](const ServedRequest& a) { return inside(window, a.last_token); });
  const double output = steady_output_tokens(steady, log);
  const RequestTimes times(log, serving.slo, [&](const ServedRequest& a) {
    return a.arrival >= window.from && a.arrival <= window.until;
  });
  add_metric(record, kSteadyDuration, length);
  const Rates rates{static_cast<double>(answered), static_cast<double>(times.good), output,
                    output + steady_prompt_tokens(window, log), length};
  kSteadyRates.report(rates, record);
  times.report(kSteadyTimes, log.steady_gaps(), record);
  kSteadyRates.report_shares(rates, serving.accelerators(), record);
  if (!serving.slo.empty())
    add_metric(record, kSteadyAttainment,
               static_cast<double>(times.good) / static_cast<double>(times.ttft.values.size()));
}

}  // namespace orrery
