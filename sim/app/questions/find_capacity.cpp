// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/find_capacity.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/results/table.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

constexpr CapacityRange kRates = {1e-6, 1e7};
constexpr CapacityRange kSpeeds = {1e-6, 1e6};  // as serving.workload.speed
constexpr int kMostReplicas = 4096;
constexpr double kWidth = 0.01;     ///< relative width of the answer
constexpr double kKept = 0.99;      ///< share of requests that must keep bounds of each
constexpr double kStepDown = 0.98;  ///< factor to the next value that more seeds may hold
constexpr int kMostSteps = 20;
constexpr double kMostRequests = 4e5;  ///< requests that a run is lengthened to at most
constexpr double kLonger = 1.1;        ///< factor on the requests that would decide

CapacityTrial tried(const CapacityTry& attempt, double value, CapacityAnswer& answer) {
  answer.trials.push_back(attempt(value));
  if (answer.trials.back().holds()) answer.value = std::max(answer.value.value_or(value), value);
  return answer.trials.back();
}

/// To four digits, as it is printed: what is said to hold is what was tried. Powers of ten with
/// whole exponents alone are exact, so that the nearest number to the digits is found.
double rounded(double value) {
  const int digits = 3 - static_cast<int>(std::floor(std::log10(value)));
  const double unit = std::pow(10, std::abs(digits));
  return digits >= 0 ? std::round(value * unit) / unit : std::round(value / unit) * unit;
}

/// If requests never overlap, a lower rate or a larger fleet does not change their times.
bool same_times(const CapacityTrial& a, const CapacityTrial& b) {
  return a.ttft_p99_ms > 0 && a.ttft_p99_ms == b.ttft_p99_ms && a.tpot_p99_ms == b.tpot_p99_ms &&
         a.mean_e2el_ms == b.mean_e2el_ms;
}

double value_of(const RunRecord& record, const char* metric) {
  const Metric* found = record.find(metric);
  return found == nullptr ? 0 : found->value;
}

/// The value in the steady window; of the whole run where there is none.
double steady_value_of(const RunRecord& record, const std::string& metric) {
  const Metric* found = record.find("steady_" + metric);
  return found == nullptr ? value_of(record, metric.c_str()) : found->value;
}

std::string text_of(const RunRecord& record, const char* label) {
  const auto found = std::ranges::find(record.labels, label, &Label::name);
  return found == record.labels.end() ? "" : found->value;
}

/// The bound that a run does not keep; empty: it keeps all.
std::string failure_of(const RunRecord& record, const ServingSlo& slo) {
  if (record.status != RunStatus::kOk) return record.reason;
  const auto above = [&](const std::optional<Seconds>& bound, const char* metric) {
    return bound && steady_value_of(record, metric) > bound->base() * 1e3;
  };
  if (above(slo.ttft_p99, "p99_ttft_ms")) return "p99 TTFT";
  if (above(slo.tpot_p99, "p99_tpot_ms")) return "p99 TPOT";
  if (above(slo.e2el_p99, "p99_e2el_ms")) return "p99 of whole requests";
  const bool each = slo.ttft || slo.tpot || slo.e2el;
  if (each && steady_value_of(record, "slo_attainment") < kKept) return "bounds of each request";
  return text_of(record, "load") == "saturated" ? "the queue grows" : "";
}

/// Requests that a run needs for its load to be decided and its figures to be steady; 0: no more.
double requests_wanted(const RunRecord& record) {
  if (record.status != RunStatus::kOk || text_of(record, "load") == "saturated") return 0;
  if (const double deciding = value_of(record, "deciding_requests"); deciding > 0) return deciding;
  return text_of(record, "steady") == "yes" ? 0 : 2 * value_of(record, "completed");
}

}  // namespace

CapacityAnswer find_highest(const CapacityTry& attempt, double start, const CapacityRange& range,
                            double width) {
  CapacityAnswer answer;
  double low = 0, high = std::clamp(rounded(start), range.least, range.most);
  if (tried(attempt, high, answer).holds()) {
    do {
      low = high;
      if (low == range.most) return answer;
      high = std::min(2 * high, range.most);
    } while (tried(attempt, high, answer).holds());
  } else {
    while (low == 0) {
      if (high == range.least) return answer;
      const double half = std::max(rounded(high / 2), range.least);
      const CapacityTrial before = answer.trials.back();
      const CapacityTrial trial = tried(attempt, half, answer);
      if (trial.holds()) {
        low = half;
      } else if (same_times(before, trial)) {
        return answer;
      } else {
        high = half;
      }
    }
  }
  while (high / low > 1 + width) {
    const double middle = rounded(std::sqrt(low * high));
    if (middle <= low || middle >= high) break;
    (tried(attempt, middle, answer).holds() ? low : high) = middle;
  }
  answer.value = low;
  return answer;
}

CapacityAnswer find_fewest(const CapacityTry& attempt, int start, int most) {
  CapacityAnswer answer;
  int enough = std::min(start, most), few = 0;
  if (tried(attempt, enough, answer).holds()) {
    for (int step = 1; enough > 1; step *= 2) {
      few = std::max(enough - step, 1);
      if (!tried(attempt, few, answer).holds()) break;
      enough = std::exchange(few, 0);
    }
  } else {
    CapacityTrial before;
    for (int step = 1; !answer.trials.back().holds(); step *= 2) {
      before = answer.trials.back();
      few = enough;
      if (enough == most) return answer;
      enough = std::min(enough + step, most);
      if (!tried(attempt, enough, answer).holds() && same_times(before, answer.trials.back()))
        return answer;
    }
  }
  while (enough - few > 1) {
    const int middle = few + (enough - few) / 2;
    (tried(attempt, middle, answer).holds() ? enough : few) = middle;
  }
  answer.value = enough;
  return answer;
}

CapacitySearch::CapacitySearch(std::string file, std::vector<std::string> settings, Capacity what)
    : file_(std::move(file)),
      settings_(std::move(settings)),
      what_(what),
      loaded_(load_experiment(file_, settings_)) {
  if (loaded_.experiment->kind != "serving")
    throw UsageError("--find is of experiments of kind serving; this is one of kind " +
                     loaded_.experiment->kind);
  if (base().serving.slo.empty())
    throw UsageError("--find needs bounds: --slo ttft_p99=2s,tpot_p99=50ms, or serving.slo");
  const auto number = [&](const std::string& path) -> std::optional<double> {
    for (const config::Leaf& leaf : loaded_.leaves())
      if (leaf.path == path) return leaf.value;
    return std::nullopt;
  };
  if (what == Capacity::kInstances) {
    path_ = "serving.fleet.0.replicas";
  } else {
    path_ = number("serving.workload.rate") ? "serving.workload.rate" : "serving.workload.speed";
    if (!number(path_))
      throw UsageError(
          "--find max_rate needs requests that come at a rate (serving.workload.rate) "
          "or a trace; clients that wait for their answers have none");
  }
  start_ = number(path_).value();
  for (const char* key : {"serving.workload.requests", "serving.workload.sessions"})
    if (number("serving.workload.rate") && number(key)) count_ = key;
  if (!count_.empty()) requests_ = *number(count_);
  rate_ = number("serving.workload.rate").value_or(0);
  seeded_ = number("serving.workload.seed").has_value();
  seed_ = seeded_ ? std::llround(*number("serving.workload.seed")) : 0;
  fleet_.emplace(base().fleet());
}

std::string CapacitySearch::setting(double value) const {
  return fmt::format("{}={}{}", path_,
                     print_number(what_ == Capacity::kInstances ? std::nearbyint(value) : value),
                     path_.ends_with("rate") ? " /s" : "");
}

RunRecord CapacitySearch::run(double value, std::int64_t seed, double requests) const {
  std::vector<std::string> set = settings_;
  set.push_back(setting(value));
  if (seeded_) set.push_back(fmt::format("serving.workload.seed={}", seed));
  if (!count_.empty()) set.push_back(fmt::format("{}={}", count_, std::llround(requests)));
  const LoadedExperiment trial = load_experiment(file_, set);
  RunRecord record;
  try {
    trial.as<ServingExperiment>().serve(*fleet_, record);
  } catch (const std::overflow_error& error) {
    record.status = RunStatus::kInfeasible;
    record.reason = error.what();
  }
  return record;
}

/// Lengthens the run until its load is decided and its figures are steady.
CapacityTrial CapacitySearch::attempt(double value, std::int64_t seed) const {
  double requests = requests_;
  RunRecord record = run(value, seed, requests);
  const double most = std::max(kMostRequests, requests_);
  while (!count_.empty() && requests < most) {
    const double wanted = requests_wanted(record);
    if (wanted == 0) break;
    requests = std::min(std::max(wanted, requests) * kLonger, most);
    record = run(value, seed, requests);
  }
  CapacityTrial trial{value};
  trial.ttft_p99_ms = steady_value_of(record, "p99_ttft_ms");
  trial.tpot_p99_ms = steady_value_of(record, "p99_tpot_ms");
  trial.e2el_p99_ms = steady_value_of(record, "p99_e2el_ms");
  trial.goodput = steady_value_of(record, "request_goodput");
  trial.mean_e2el_ms = steady_value_of(record, "mean_e2el_ms");
  trial.throughput = value_of(record, "request_throughput");
  trial.requests = value_of(record, "completed");
  trial.load = text_of(record, "load");
  trial.fails = failure_of(record, base().serving.slo);
  if (trial.holds() && !count_.empty() && trial.load == "undecided")
    trial.fails = fmt::format("undecided with {} requests", std::llround(requests));
  return trial;
}

/// The load over the capacity of one replica, as an overloaded one answers. Clients and traces have
/// no rate: one replica.
int CapacitySearch::first_fleet() const {
  if (count_.empty()) return 1;
  const double alone = value_of(run(1, seed_, requests_), "request_throughput");
  if (alone <= 0) return 1;
  return static_cast<int>(std::clamp(std::ceil(rate_ / alone), 1.0, 1.0 * kMostReplicas));
}

CapacityAnswer CapacitySearch::find(const Heard& heard) {
  heard_ = heard;
  const CapacityTry one = [&](double value) { return known(value, seed_); };
  if (what_ == Capacity::kInstances) return find_fewest(one, first_fleet(), kMostReplicas);
  return find_highest(one, start_, path_.ends_with("rate") ? kRates : kSpeeds, kWidth);
}

const CapacityTrial& CapacitySearch::known(double value, std::int64_t seed) {
  const auto [at, added] = known_.try_emplace({value, seed});
  if (added) {
    at->second = attempt(value, seed);
    if (heard_) heard_(at->second);
  }
  return at->second;
}

int CapacitySearch::seeds_that_hold(double value) {
  int held = 0;
  for (int i = 0; i < seeds(); ++i) held += known(value, seed_ + i).holds() ? 1 : 0;
  return held;
}

bool CapacitySearch::all_hold(double value) {
  for (int i = 0; i < seeds(); ++i)
    if (!known(value, seed_ + i).holds()) return false;
  return true;
}

std::optional<double> CapacitySearch::value_for_all_seeds(double answer) {
  for (int step = 0; step < kMostSteps; ++step) {
    if (all_hold(answer)) return answer;
    answer = what_ == Capacity::kInstances ? answer + 1 : rounded(answer * kStepDown);
  }
  return std::nullopt;
}

std::string CapacitySearch::bounds() const {
  const ServingSlo& slo = base().serving.slo;
  std::vector<std::string> texts;
  const auto add = [&](const char* name, const std::optional<Seconds>& bound) {
    if (bound) texts.push_back(fmt::format("{} {}", name, format_si(bound->base(), "s")));
  };
  add("p99 TTFT", slo.ttft_p99);
  add("p99 TPOT", slo.tpot_p99);
  add("p99 of whole requests", slo.e2el_p99);
  add("TTFT", slo.ttft);
  add("TPOT", slo.tpot);
  add("whole requests", slo.e2el);
  return comma_joined(texts);
}

}  // namespace orrery
