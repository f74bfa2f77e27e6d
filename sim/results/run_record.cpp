// SPDX-License-Identifier: Apache-2.0
#include "sim/results/run_record.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace orrery {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSchema = "orrery.run/1";
constexpr std::string_view kBreakdownPrefix = "breakdown.";

void require_finite(double value, const std::string& what) {
  if (!std::isfinite(value)) throw std::logic_error(what + " is not a finite number");
}

void require_finite(const ordered_json& value, const std::string& what) {
  if (value.is_number_float()) require_finite(value.get<double>(), what);
  if (value.is_structured()) {
    for (const auto& item : value.items()) require_finite(item.value(), what + "." + item.key());
  }
}

bool is_breakdown(const std::string& name) {
  return name.size() > kBreakdownPrefix.size() + 2 && name.rfind(kBreakdownPrefix, 0) == 0 &&
         name.compare(name.size() - 2, 2, "_s") == 0;
}

void add_metrics(ordered_json& json, const RunRecord& record) {
  ordered_json metrics = ordered_json::object();
  ordered_json units = ordered_json::object();
  ordered_json intervals = ordered_json::object();
  ordered_json breakdown = ordered_json::object();
  for (const Metric& metric : record.metrics) {
    metrics[metric.name] = metric.value;
    units[metric.name] = metric.unit;
    intervals[metric.name] = nullptr;
    if (metric.interval) {
      intervals[metric.name] = {metric.interval->first, metric.interval->second};
    }
    if (is_breakdown(metric.name)) {
      breakdown[metric.name.substr(kBreakdownPrefix.size())] = metric.value;
    }
  }
  for (const Label& label : record.labels) metrics[label.name] = label.value;
  for (const MetricList& list : record.lists) {
    metrics[list.name] = list.values;
    units[list.name] = list.unit;
  }
  json["metrics"] = std::move(metrics);
  json["units"] = std::move(units);
  json["intervals"] = std::move(intervals);
  json["breakdown"] = std::move(breakdown);
}

ordered_json item_of(const ClassBreakdown& c) {
  return {{"name", c.name},
          {"count", c.count},
          {"time_s", c.time_s},
          {"flops", c.flops},
          {"bytes", c.bytes}};
}

ordered_json item_of(const ComponentUse& use) {
  return {{"name", use.name}, {"busy_share", use.busy_share}, {"sent_bytes", use.sent_bytes}};
}

ordered_json item_of(const LinkUse& use) {
  return {{"name", use.name},
          {"links", use.links},
          {"bytes", use.bytes},
          {"busy_share", use.busy_share},
          {"peak_share", use.peak_share}};
}

ordered_json item_of(const Parameter& p) {
  return {{"path", p.path},
          {"text", p.text},
          {"value", p.value ? ordered_json(*p.value) : ordered_json()},
          {"unit", p.unit},
          {"origin", p.origin}};
}

template <class Item>
ordered_json list_of(const std::vector<Item>& items) {
  ordered_json list = ordered_json::array();
  for (const Item& item : items) list.push_back(item_of(item));
  return list;
}

}  // namespace

RunRecord::RunRecord() = default;
RunRecord::RunRecord(const RunRecord&) = default;
RunRecord::RunRecord(RunRecord&&) noexcept = default;
RunRecord& RunRecord::operator=(const RunRecord&) = default;
RunRecord& RunRecord::operator=(RunRecord&&) noexcept = default;
RunRecord::~RunRecord() = default;

const char* to_string(RunStatus status) {
  constexpr std::array kNames = {"ok", "infeasible", "failed"};
  return kNames.at(static_cast<std::size_t>(status));
}

RunStatus run_status_from(std::string_view word) {
  for (RunStatus status : {RunStatus::kOk, RunStatus::kInfeasible, RunStatus::kFailed}) {
    if (word == to_string(status)) return status;
  }
  throw std::invalid_argument("unknown run status '" + std::string(word) + "'");
}

const Metric* RunRecord::find(std::string_view metric) const {
  for (const Metric& candidate : metrics) {
    if (candidate.name == metric) return &candidate;
  }
  return nullptr;
}

std::vector<Parameter> RunRecord::parameters() const {
  return base ? parameters_with(*base, varied) : std::vector<Parameter>{};
}

std::optional<double> RunRecord::parameter(std::string_view path) const {
  if (!base) return std::nullopt;
  for (const Variation& other : varied)
    if (other.parameter.path == path) return other.parameter.value;
  for (const Parameter& parameter : base->parameters)
    if (parameter.path == path) return parameter.value;
  return std::nullopt;
}

ordered_json RunRecord::configuration() const {
  return base ? canonical_with(*base, varied) : ordered_json::object();
}

void require_valid(const RunRecord& record) {
  std::set<std::string_view> names;
  const auto require_new = [&](const std::string& name) {
    if (!names.insert(name).second) throw std::logic_error("two metrics are called " + name);
  };
  for (const Metric& metric : record.metrics) {
    require_new(metric.name);
    require_finite(metric.value, "metric " + metric.name);
    if (metric.interval) {
      require_finite(metric.interval->first, "p10 of metric " + metric.name);
      require_finite(metric.interval->second, "p90 of metric " + metric.name);
    }
  }
  for (const Label& label : record.labels) require_new(label.name);
  for (const ClassBreakdown& c : record.classes) {
    require_finite(c.time_s, "time of class " + c.name);
    require_finite(c.flops, "flops of class " + c.name);
    require_finite(c.bytes, "bytes of class " + c.name);
  }
  for (const auto* links : {&record.link_classes, &record.links})
    for (const LinkUse& use : *links)
      for (const double number : {use.bytes, use.busy_share, use.peak_share})
        require_finite(number, "use of " + use.name);
  require_finite(record.provenance, "provenance");
}

ordered_json to_json(const RunRecord& record) {
  require_valid(record);
  ordered_json json = {{"schema", kSchema},
                       {"experiment", record.experiment},
                       {"name", record.name},
                       {"identity", record.identity},
                       {"status", to_string(record.status)},
                       {"reason", record.reason}};
  add_metrics(json, record);
  json["classes"] = list_of(record.classes);
  json["components"] = list_of(record.components);
  json["link_classes"] = list_of(record.link_classes);
  json["links"] = list_of(record.links);
  json["provenance"] = record.provenance;
  json["configuration"] = record.configuration();
  json["parameters"] = list_of(record.parameters());
  return json;
}

std::string rests_on(const RunRecord& record) {
  const auto share = [&record](const char* what) {
    return record.provenance.is_object() ? record.provenance.value(what, 0.0) : 0.0;
  };
  const double measured = share("measured") + share("calibrated");
  const std::string errors = record.provenance.contains("known_errors") ? ", known error" : "";
  if (measured >= share("extrapolated") && measured >= share("analytic"))
    return "measurements" + errors;
  return (share("extrapolated") > share("analytic") ? "carried over" : "priors") + errors;
}

}  // namespace orrery
