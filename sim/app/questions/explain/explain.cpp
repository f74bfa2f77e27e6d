// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/explain/explain.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/questions/explain/effects.h"
#include "sim/config/output.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

ordered_json explain_configuration(const LoadedExperiment& loaded) {
  ordered_json rows = ordered_json::array();
  for (const config::Leaf& leaf : loaded.leaves()) {
    rows.push_back({{"path", leaf.path}, {"value", leaf.text}, {"origin", leaf.origin}});
  }
  return rows;
}

/// The time of the run with its interval: what all shares are shares of.
ordered_json explain_time(const RunRecord& record) {
  for (const char* name : {"step_time_s", "time_s"}) {
    const Metric* metric = record.find(name);
    if (metric == nullptr) continue;
    ordered_json time = {{"metric", name}, {"value", metric->value}};
    time["p10"] = metric->interval ? ordered_json(metric->interval->first) : nullptr;
    time["p90"] = metric->interval ? ordered_json(metric->interval->second) : nullptr;
    return time;
  }
  return nullptr;  // does not fit, or a dead link held it up
}

/// What the compute stream of the role does: adds up to the step.
ordered_json explain_breakdown(const RunRecord& record, double time) {
  constexpr std::string_view kPrefix = "breakdown.";
  ordered_json rows = ordered_json::array();
  for (const Metric& metric : record.metrics) {
    if (metric.name.rfind(kPrefix, 0) != 0) continue;
    const std::string part =
        metric.name.substr(kPrefix.size(), metric.name.size() - kPrefix.size() - 2);
    rows.push_back({{"part", part}, {"time_s", metric.value}, {"share", metric.value / time}});
  }
  return rows;
}

/// Rows by one of their texts, the longest first.
ordered_json sums_by(const ordered_json& rows, const char* key, double time) {
  std::map<std::string, double> sums;
  for (const ordered_json& row : rows)
    sums[row.at(key).get<std::string>()] += row.at("total_s").get<double>();
  std::vector<std::pair<std::string, double>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  ordered_json result = ordered_json::array();
  for (const auto& [name, total] : sorted)
    result.push_back({{key, name}, {"time_s", total}, {"share", total / time}});
  return result;
}

/// Shares of the step of what is on its critical path; what the step has after it is the host's.
void add_path_shares(double time, ordered_json& path) {
  const double rest = time - path.at("time_s").get<double>();
  constexpr double kRounding = 1e-12;
  if (rest > kRounding)
    path["parts"].push_back({{"part", "overhead of the step"}, {"operators", 1}, {"time_s", rest}});
  for (const char* rows : {"parts", "stages"})
    for (ordered_json& row : path[rows]) row["share"] = row.at("time_s").get<double>() / time;
}

/// The ten longest, all their runs together.
ordered_json longest_of(const ordered_json& kernels, double time) {
  constexpr std::size_t kLongest = 10;
  std::vector<ordered_json> rows(kernels.begin(), kernels.end());
  std::stable_sort(rows.begin(), rows.end(), [](const ordered_json& a, const ordered_json& b) {
    return a.at("total_s").get<double>() > b.at("total_s").get<double>();
  });
  if (rows.size() > kLongest) rows.resize(kLongest);
  for (ordered_json& row : rows) row["share"] = row.at("total_s").get<double>() / time;
  return rows;
}

/// Kernels by part of the model, the longest part first: what they compute and move, how long they
/// take, and the bound that most of that time is under.
ordered_json modules_of(const ordered_json& kernels, double time) {
  struct Sum {
    double flops = 0, bytes = 0, time = 0;
    std::map<std::string, double> bounds;
  };
  std::map<std::string, Sum> sums;
  for (const ordered_json& row : kernels) {
    const double runs = row.at("count");
    Sum& sum = sums[row.at("part").get<std::string>()];
    sum.flops += row.at("flops").get<double>() * runs;
    sum.bytes += row.at("bytes").get<double>() * runs;
    sum.time += row.at("total_s").get<double>();
    sum.bounds[row.at("bound")] += row.at("total_s").get<double>();
  }
  std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  ordered_json rows = ordered_json::array();
  for (const auto& [module, sum] : sorted) {
    const auto bound =
        std::max_element(sum.bounds.begin(), sum.bounds.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    rows.push_back({{"module", module},
                    {"flops", sum.flops},
                    {"bytes", sum.bytes},
                    {"bound", bound->first},
                    {"time_s", sum.time},
                    {"share", sum.time / time}});
  }
  return rows;
}

/// What limits the run, of the rows of its kernels and transfers.
void explain_limits(const RunRecord& record, ordered_json& explanation) {
  explanation["time"] = explain_time(record);
  if (explanation["time"].is_null()) return;
  const double time = explanation["time"]["value"];
  explanation["breakdown"] = explain_breakdown(record, time);
  if (const Metric* exposed = record.find("breakdown.exposed_communication_s")) {
    explanation["exposed_communication"] = {{"time_s", exposed->value},
                                            {"share", exposed->value / time}};
  }
  const ordered_json kernels = explanation.value("kernels", ordered_json::array());
  explanation["bounds"] = sums_by(kernels, "bound", time);
  explanation["classes"] = sums_by(kernels, "class", time);
  explanation["communication"] =
      sums_by(explanation.value("transfers", ordered_json::array()), "class", time);
  if (record.find("step_time_s") != nullptr) explanation["modules"] = modules_of(kernels, time);
  if (explanation.contains("critical_path")) add_path_shares(time, explanation["critical_path"]);
  if (const auto casts = explanation.find("narrow_casts"); casts != explanation.end())
    (*casts)["share"] = casts->at("time_s").get<double>() / time;
  explanation["longest"] = longest_of(kernels, time);
}

/// What a result says in words: algorithm, protocol, bottleneck, bound.
ordered_json explain_labels(const RunRecord& record) {
  ordered_json labels = ordered_json::object();
  for (const Label& label : record.labels) labels[label.name] = label.value;
  return labels;
}

ordered_json explain_links(const RunRecord& record) {
  ordered_json rows = ordered_json::array();
  for (const LinkUse& use : record.link_classes) {
    rows.push_back({{"name", use.name},
                    {"links", use.links},
                    {"bytes", use.bytes},
                    {"busy_share", use.busy_share},
                    {"peak_share", use.peak_share}});
  }
  return rows;
}

}  // namespace

nlohmann::ordered_json explain(const LoadedExperiment& loaded) {
  Trials trials(loaded);
  const RunRecord& record = trials.record();
  ordered_json explanation = {
      {"schema", "orrery.explain/1"},       {"identity", loaded.identity},
      {"experiment", record.experiment},    {"name", record.name},
      {"status", to_string(record.status)}, {"reason", record.reason},
      {"labels", explain_labels(record)},   {"links", explain_links(record)}};
  loaded.experiment->explain(trials.replay(), explanation);
  explain_limits(record, explanation);
  Effects effects;
  if (loaded.experiment->is_quick()) {
    effects = trials.effects();
  } else {
    effects.not_examined = {"any input"};
  }
  explanation["no_effect"] = std::move(effects.none);
  explanation["not_examined"] = std::move(effects.not_examined);
  explanation["configuration"] = explain_configuration(loaded);
  return explanation;
}

}  // namespace orrery
