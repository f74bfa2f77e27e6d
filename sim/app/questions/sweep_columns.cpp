// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/sweep_columns.h"

#include <algorithm>

#include "sim/app/experiments/enum_names.h"
#include "sim/app/questions/sweep_report.h"

namespace orrery {
namespace {

using E = Experiment;
using R = RunRecord;

std::string metric(const R& record, const char* name, const char* unit) {
  const Metric* m = record.find(name);
  return m != nullptr ? format_si(m->value, unit) : "-";
}

std::string percent(const R& record, const char* name) {
  const Metric* m = record.find(name);
  return m != nullptr ? format_percent(m->value) : "-";
}

std::string label(const R& record, const char* name) {
  const auto named = [name](const Label& l) { return l.name == name; };
  const auto found = std::find_if(record.labels.begin(), record.labels.end(), named);
  return found != record.labels.end() ? found->value : "-";
}

/// The time of a result, or in few words why there is none.
std::string time_or_fault(const R& record, const char* name) {
  if (record.status == RunStatus::kOk) return metric(record, name, "s");
  if (record.status == RunStatus::kFailed) return "failed";
  const Metric* shortfall = record.find("memory_shortfall_bytes");
  if (shortfall != nullptr) return "does not fit, " + format_si(shortfall->value, "B") + " short";
  return record.reason.starts_with(kCannotBe) ? kCannotBe : "infeasible";
}

/// "332 s to 367 s", or nothing where nothing was fitted.
std::string interval(const R& record, const char* name) {
  const Metric* m = record.find(name);
  if (m == nullptr || !m->interval) return "-";
  return format_si(m->interval->first, "s") + " to " + format_si(m->interval->second, "s");
}

std::string plan(const E& e, const R&) {
  std::string text = std::to_string(e.ranks()) + " ranks: TP" + std::to_string(e.parallel.tp);
  const auto add = [&text](const char* name, int size) {
    if (size > 1) text += std::string(" ") + name + std::to_string(size);
  };
  add("PP", e.parallel.pp);
  add("VPP", e.parallel.vpp);
  add("DP", e.parallel.dp);
  add("EP", e.parallel.ep);
  add("ETP", e.parallel.etp);
  add("ETP", e.parallel.etp);
  return text;
}

std::string batch(const E& e, const R&) {
  return e.kind == ExperimentKind::kTraining ? std::to_string(e.batch.global)
                                             : std::to_string(e.batch.micro) + "/rank";
}

std::string exposed(const E&, const R& record) {
  const Metric* part = record.find("breakdown.exposed_communication_s");
  const Metric* step = record.find("step_time_s");
  return part != nullptr && step != nullptr ? format_percent(part->value / step->value) : "-";
}

/// What the user wrote below a key, as far as it is one value: "gemm".
std::string written(const R& record, const char* key, const char* value) {
  const nlohmann::ordered_json configuration = record.configuration();
  const auto section = configuration.find(key);
  if (section == configuration.end() || !section->is_object()) return "-";
  const auto found = section->find(value);
  return found != section->end() && found->is_string() ? found->get<std::string>() : "-";
}

constexpr Table::Align kRight = Table::Align::kRight;

std::vector<SweepColumn> model_columns() {
  return {
      {{"plan"}, plan},
      {{"batch", kRight}, batch},
      {{"step", kRight}, [](const E&, const R& r) { return time_or_fault(r, "step_time_s"); }},
      {{"p10 to p90", kRight}, [](const E&, const R& r) { return interval(r, "step_time_s"); }},
      {{"tokens/s/acc", kRight},
       [](const E&, const R& r) { return metric(r, "tokens_per_s_per_accelerator", ""); }},
      {{"MFU", kRight}, [](const E&, const R& r) { return percent(r, "model_flops_utilization"); }},
      {{"memory", kRight},
       [](const E&, const R& r) { return metric(r, "peak_memory_bytes", "B"); }},
      {{"exposed comm", kRight}, exposed},
      {{"power", kRight}, [](const E&, const R& r) { return metric(r, "average_power_w", "W"); }},
      {{"system power", kRight},
       [](const E&, const R& r) { return metric(r, "system_power_w", "W"); }},
      {{"system tokens/J", kRight},
       [](const E&, const R& r) { return metric(r, "system_tokens_per_joule", ""); }}};
}

std::vector<SweepColumn> operator_columns() {
  return {
      {{"operator"}, [](const E&, const R& r) { return written(r, "operator", "kind"); }},
      {{"precision"}, [](const E& e, const R&) { return std::string(to_string(e.precision)); }},
      {{"time", kRight}, [](const E&, const R& r) { return time_or_fault(r, "time_s"); }},
      {{"p10 to p90", kRight}, [](const E&, const R& r) { return interval(r, "time_s"); }},
      {{"work", kRight}, [](const E&, const R& r) { return metric(r, "flops_per_s", "FLOP/s"); }},
      {{"traffic", kRight}, [](const E&, const R& r) { return metric(r, "bytes_per_s", "B/s"); }},
      {{"bound"}, [](const E&, const R& r) { return label(r, "bound"); }},
      {{"of limit", kRight}, [](const E&, const R& r) { return percent(r, "share_of_limit"); }},
      {{"clock", kRight}, [](const E&, const R& r) { return metric(r, "clock_hz", "Hz"); }},
      {{"power", kRight}, [](const E&, const R& r) { return metric(r, "average_power_w", "W"); }}};
}

std::vector<SweepColumn> collective_columns() {
  return {
      {{"collective"}, [](const E&, const R& r) { return written(r, "collective", "kind"); }},
      {{"time", kRight}, [](const E&, const R& r) { return time_or_fault(r, "time_s"); }},
      {{"p10 to p90", kRight}, [](const E&, const R& r) { return interval(r, "time_s"); }},
      {{"algorithm"}, [](const E&, const R& r) { return label(r, "algorithm"); }},
      {{"protocol"}, [](const E&, const R& r) { return label(r, "protocol"); }},
      {{"of bytes", kRight},
       [](const E&, const R& r) { return metric(r, "algorithm_bytes_per_s", "B/s"); }},
      {{"bus", kRight}, [](const E&, const R& r) { return metric(r, "bus_bytes_per_s", "B/s"); }},
      {{"of limit", kRight}, [](const E&, const R& r) { return percent(r, "share_of_limit"); }},
      {{"bottleneck"}, [](const E&, const R& r) { return label(r, "bottleneck"); }}};
}

}  // namespace

const std::vector<SweepColumn>& sweep_columns(ExperimentKind kind) {
  static const std::vector<SweepColumn> of_models = model_columns(),
                                        of_operators = operator_columns(),
                                        of_collectives = collective_columns();
  if (kind == ExperimentKind::kOperator) return of_operators;
  return kind == ExperimentKind::kCollective ? of_collectives : of_models;
}

std::string sweep_question(ExperimentKind kind) {
  if (kind == ExperimentKind::kOperator) return "time_s, bound, flops_per_s";
  if (kind == ExperimentKind::kCollective) return "time_s, algorithm, bus_bytes_per_s";
  return "step_time_s, tokens_per_s_per_accelerator";
}

}  // namespace orrery
