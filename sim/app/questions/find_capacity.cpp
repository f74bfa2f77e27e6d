// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/find_capacity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "sim/app/experiments/exit_codes.h"
#include "sim/config/leaf.h"
#include "sim/results/table.h"
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

/// Requests that do not meet take what they take at any lower rate.
bool same_times(const CapacityTrial& a, const CapacityTrial& b) {
  return a.ttft_p99_ms > 0 && a.ttft_p99_ms == b.ttft_p99_ms && a.tpot_p99_ms == b.tpot_p99_ms;
}

double value_of(const RunRecord& record, const char* metric) {
  const Metric* found = record.find(metric);
  return found == nullptr ? 0 : found->value;
}

bool says(const RunRecord& record, const char* label, const char* word) {
  return std::any_of(record.labels.begin(), record.labels.end(),
                     [&](const Label& l) { return l.name == label && l.value == word; });
}

/// What of the bounds a run does not keep; empty: nothing.
std::string failure_of(const RunRecord& record, const ServingSlo& slo) {
  if (record.status != RunStatus::kOk) return record.reason;
  const auto above = [&](const std::optional<Seconds>& bound, const char* metric) {
    return bound && value_of(record, metric) > bound->base() * 1e3;
  };
  if (above(slo.ttft_p99, "p99_ttft_ms")) return "p99 TTFT";
  if (above(slo.tpot_p99, "p99_tpot_ms")) return "p99 TPOT";
  if (above(slo.e2el_p99, "p99_e2el_ms")) return "p99 of whole requests";
  const bool each = slo.ttft || slo.tpot || slo.e2el;
  if (each && value_of(record, "slo_attainment") < kKept) return "bounds of each request";
  return says(record, "saturated", "yes") ? "the queue grows" : "";
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
  while (!tried(attempt, enough, answer).holds()) {
    few = enough;
    if (enough == most) return answer;
    enough = std::min(2 * enough, most);
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
  seeded_ = number("serving.workload.seed").has_value();
  seed_ = seeded_ ? std::llround(*number("serving.workload.seed")) : 0;
  fleet_.emplace(base().fleet());
}

std::string CapacitySearch::setting(double value) const {
  const std::string unit = path_.ends_with("rate") ? " /s" : "";
  return path_ + "=" + print_number(what_ == Capacity::kInstances ? std::nearbyint(value) : value) +
         unit;
}

CapacityTrial CapacitySearch::attempt(double value, std::int64_t seed) const {
  std::vector<std::string> set = settings_;
  set.push_back(setting(value));
  if (seeded_) set.push_back("serving.workload.seed=" + std::to_string(seed));
  const LoadedExperiment trial = load_experiment(file_, set);
  const auto& experiment = trial.as<ServingExperiment>();
  RunRecord record;
  try {
    experiment.serve(*fleet_, record);
  } catch (const std::overflow_error& error) {
    record.status = RunStatus::kInfeasible;
    record.reason = error.what();
  }
  return {value,
          value_of(record, "p99_ttft_ms"),
          value_of(record, "p99_tpot_ms"),
          value_of(record, "p99_e2el_ms"),
          value_of(record, "request_goodput"),
          says(record, "saturated", "yes"),
          failure_of(record, experiment.serving.slo)};
}

CapacityAnswer CapacitySearch::find(const Heard& heard) {
  heard_ = heard;
  const CapacityTry one = [&](double value) { return known(value, seed_); };
  if (what_ == Capacity::kInstances)
    return find_fewest(one, static_cast<int>(std::lround(start_)), kMostReplicas);
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
  std::string text;
  const auto add = [&](const char* name, const std::optional<Seconds>& bound) {
    if (!bound) return;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + format_si(bound->base(), "s");
  };
  add("p99 TTFT", slo.ttft_p99);
  add("p99 TPOT", slo.tpot_p99);
  add("p99 of whole requests", slo.e2el_p99);
  add("TTFT", slo.ttft);
  add("TPOT", slo.tpot);
  add("whole requests", slo.e2el);
  return text;
}

}  // namespace orrery
