// SPDX-License-Identifier: Apache-2.0
#include "sim/results/run_record.h"

#include <cmath>
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
  json["metrics"] = std::move(metrics);
  json["units"] = std::move(units);
  json["intervals"] = std::move(intervals);
  json["breakdown"] = std::move(breakdown);
}

ordered_json classes_to_json(const std::vector<ClassBreakdown>& classes) {
  ordered_json list = ordered_json::array();
  for (const ClassBreakdown& c : classes) {
    list.push_back({{"name", c.name},
                    {"count", c.count},
                    {"time_s", c.time_s},
                    {"flops", c.flops},
                    {"bytes", c.bytes}});
  }
  return list;
}

ordered_json components_to_json(const std::vector<ComponentUse>& components) {
  ordered_json list = ordered_json::array();
  for (const ComponentUse& c : components) {
    list.push_back({{"name", c.name}, {"busy_share", c.busy_share}, {"sent_bytes", c.sent_bytes}});
  }
  return list;
}

ordered_json links_to_json(const std::vector<LinkUse>& links) {
  ordered_json list = ordered_json::array();
  for (const LinkUse& use : links) {
    list.push_back({{"name", use.name},
                    {"links", use.links},
                    {"bytes", use.bytes},
                    {"busy_share", use.busy_share},
                    {"peak_share", use.peak_share}});
  }
  return list;
}

std::vector<LinkUse> links_from_json(const ordered_json& list) {
  std::vector<LinkUse> links;
  for (const ordered_json& item : list) {
    links.push_back({item.at("name"), item.at("links"), item.at("bytes"), item.at("busy_share"),
                     item.at("peak_share")});
  }
  return links;
}

ordered_json parameters_to_json(const std::vector<Parameter>& parameters) {
  ordered_json list = ordered_json::array();
  for (const Parameter& p : parameters) {
    ordered_json item = {{"path", p.path}, {"text", p.text}, {"value", nullptr}};
    if (p.value) item["value"] = *p.value;
    item["unit"] = p.unit;
    item["origin"] = p.origin;
    list.push_back(std::move(item));
  }
  return list;
}

Metric metric_from_json(const std::string& name, double value, const ordered_json& json) {
  Metric metric{name, value, json.at("units").value(name, std::string())};
  const ordered_json& intervals = json.at("intervals");
  if (const auto found = intervals.find(name); found != intervals.end() && !found->is_null()) {
    metric.interval = {found->at(0).get<double>(), found->at(1).get<double>()};
  }
  return metric;
}

ClassBreakdown class_from_json(const ordered_json& json) {
  return {json.at("name"), json.at("count"), json.at("time_s"), json.at("flops"), json.at("bytes")};
}

Parameter parameter_from_json(const ordered_json& json) {
  Parameter parameter{json.at("path"), json.at("text"), std::nullopt, json.at("unit"),
                      json.at("origin")};
  if (!json.at("value").is_null()) parameter.value = json.at("value").get<double>();
  return parameter;
}

RunRecord parse(const ordered_json& json) {
  if (json.at("schema") != kSchema) {
    throw std::invalid_argument("schema is " + json.at("schema").dump() + ", expected " + kSchema);
  }
  RunRecord record;
  record.identity = json.at("identity");
  record.experiment = json.at("experiment");
  record.name = json.at("name");
  record.status = run_status_from(json.at("status").get<std::string>());
  record.reason = json.at("reason");
  for (const auto& item : json.at("metrics").items()) {
    if (item.value().is_string()) {
      record.labels.push_back({item.key(), item.value()});
    } else {
      record.metrics.push_back(metric_from_json(item.key(), item.value().get<double>(), json));
    }
  }
  for (const ordered_json& item : json.at("classes")) {
    record.classes.push_back(class_from_json(item));
  }
  for (const ordered_json& item : json.at("components")) {
    record.components.push_back({item.at("name"), item.at("busy_share"), item.at("sent_bytes")});
  }
  record.link_classes = links_from_json(json.at("link_classes"));
  record.links = links_from_json(json.at("links"));
  for (const ordered_json& item : json.at("parameters")) {
    record.parameters.push_back(parameter_from_json(item));
  }
  record.provenance = json.at("provenance");
  record.configuration = json.at("configuration");
  return record;
}

}  // namespace

const char* to_string(RunStatus status) {
  switch (status) {
    case RunStatus::kOk:
      return "ok";
    case RunStatus::kInfeasible:
      return "infeasible";
    case RunStatus::kFailed:
      return "failed";
  }
  throw std::logic_error("run status out of range");
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
  require_finite(links_to_json(record.link_classes), "link_classes");
  require_finite(links_to_json(record.links), "links");
  for (const Parameter& parameter : record.parameters) {
    if (parameter.value) require_finite(*parameter.value, "parameter " + parameter.path);
  }
  require_finite(record.provenance, "provenance");
  require_finite(record.configuration, "configuration");
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
  json["classes"] = classes_to_json(record.classes);
  json["components"] = components_to_json(record.components);
  json["link_classes"] = links_to_json(record.link_classes);
  json["links"] = links_to_json(record.links);
  json["provenance"] = record.provenance;
  json["configuration"] = record.configuration;
  json["parameters"] = parameters_to_json(record.parameters);
  return json;
}

RunRecord run_record_from_json(const ordered_json& json) {
  try {
    return parse(json);
  } catch (const ordered_json::exception& error) {
    throw std::invalid_argument(std::string("not a run record: ") + error.what());
  }
}

}  // namespace orrery
