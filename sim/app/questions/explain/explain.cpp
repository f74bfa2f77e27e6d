// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/explain/explain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/pricing/tile_store.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/explain/effects.h"
#include "sim/config/output.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

ordered_json explain_configuration(const LoadedExperiment& loaded) {
  ordered_json rows = ordered_json::array();
  for (const config::Leaf& leaf : loaded.leaves())
    rows.push_back({{"path", leaf.path}, {"value", leaf.text}, {"origin", leaf.origin}});
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
    if (!metric.name.starts_with(kPrefix)) continue;
    const std::string part =
        metric.name.substr(kPrefix.size(), metric.name.size() - kPrefix.size() - 2);
    rows.push_back({{"part", part}, {"time_s", metric.value}, {"share", metric.value / time}});
  }
  return rows;
}

/// Rows with the largest value of a key first.
ordered_json sorted(std::vector<ordered_json> rows, const char* key) {
  std::ranges::stable_sort(rows, std::greater<>(), [&](const ordered_json& row) {
    return std::abs(row.at(key).get<double>());
  });
  return rows;
}

/// Rows by one of their texts, the longest first.
ordered_json sums_by(const ordered_json& rows, const char* key, double time) {
  std::map<std::string, double> sums;
  for (const ordered_json& row : rows)
    sums[row.at(key).get<std::string>()] += row.at("total_s").get<double>();
  std::vector<ordered_json> result;
  result.reserve(sums.size());
  for (const auto& [name, total] : sums)
    result.push_back({{key, name}, {"time_s", total}, {"share", total / time}});
  return sorted(std::move(result), "time_s");
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
  ordered_json rows = sorted({kernels.begin(), kernels.end()}, "total_s");
  if (rows.size() > kLongest) rows.erase(rows.begin() + kLongest, rows.end());
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
  std::vector<ordered_json> rows;
  for (const auto& [module, sum] : sums) {
    const auto bound =
        std::ranges::max_element(sum.bounds, {}, [](const auto& b) { return b.second; });
    rows.push_back({{"module", module},
                    {"flops", sum.flops},
                    {"bytes", sum.bytes},
                    {"bound", bound->first},
                    {"time_s", sum.time},
                    {"share", sum.time / time}});
  }
  return sorted(std::move(rows), "time_s");
}

/// What limits the run, of the rows of its kernels and transfers.
void explain_limits(const RunRecord& record, ordered_json& explanation) {
  explanation["time"] = explain_time(record);
  if (explanation["time"].is_null()) return;
  const double time = explanation["time"]["value"];
  explanation["breakdown"] = explain_breakdown(record, time);
  if (const Metric* exposed = record.find("breakdown.exposed_communication_s"))
    explanation["exposed_communication"] = {{"time_s", exposed->value},
                                            {"share", exposed->value / time}};
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
  for (const LinkUse& use : record.link_classes)
    rows.push_back({{"name", use.name},
                    {"links", use.links},
                    {"bytes", use.bytes},
                    {"busy_share", use.busy_share},
                    {"peak_share", use.peak_share}});
  return rows;
}

bool is_switch(const config::Leaf& leaf) {
  const bool said = leaf.path.starts_with("software.") ||
                    leaf.path.starts_with("engine.kernels.") || leaf.path == "two_batch_overlap";
  return said && !leaf.path.ends_with(".source") &&
         (leaf.type->kind == config::TypeKind::kEnum || leaf.type->kind == config::TypeKind::kFlag);
}

/// Seconds of the step with another value; nothing where it cannot have that.
std::optional<double> step_time(const LoadedExperiment& loaded, const std::string& set,
                                TileStore& tiles) {
  config::Diagnostics diagnostics;
  try {
    const RunRecord record =
        simulate(load_experiment(loaded.node, {set}, diagnostics),
                 {.trace = {}, .tiles = &tiles, .configuration = false, .beyond_memory = true});
    const Metric* time = record.find("step_time_s");
    return time != nullptr ? std::optional(time->value) : std::nullopt;
  } catch (const config::ConfigError&) {
    return std::nullopt;
  }
}

/// What every switch of the software of a step costs or saves on this very step: rows {switch,
/// value, other, step_time_s, change_s}, one for each other value that a switch may have, the
/// largest change first. Switches are what `software` has of words and flags; times and rates of
/// it are figures, not choices. A value that this step cannot have is left out. Empty for
/// experiments without software.
/// @param now seconds of the step as it is
ordered_json switch_changes(const LoadedExperiment& loaded, double now) {
  TileStore tiles;
  std::vector<ordered_json> rows;
  for (const config::Leaf& leaf : loaded.leaves()) {
    if (!is_switch(leaf)) continue;
    for (const std::string& other : other_values(leaf)) {
      const std::optional<double> time = step_time(loaded, leaf.path + "=" + other, tiles);
      if (!time) continue;
      const std::string software = "software.";
      const bool trains = leaf.path.starts_with(software);
      rows.push_back({{"switch", trains ? leaf.path.substr(software.size()) : leaf.path},
                      {"value", leaf.text},
                      {"other", other},
                      {"step_time_s", *time},
                      {"change_s", *time - now}});
    }
  }
  return sorted(std::move(rows), "change_s");
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
  Effects effects = {.none = {}, .not_examined = {"any input"}};
  if (loaded.experiment->is_quick()) effects = trials.effects();
  explanation["no_effect"] = std::move(effects.none);
  explanation["not_examined"] = std::move(effects.not_examined);
  explanation["configuration"] = explain_configuration(loaded);
  return explanation;
}

namespace {

struct ExplainQuestion {
  std::string file;
  std::vector<std::string> set;
  bool config = false;    ///< every value with its origin, too
  bool switches = false;  ///< the step with every other value of every switch, too

  void take(Options& options) {
    options.positional("EXPERIMENT", file, "experiment file (YAML)");
    options.set(set);
    options.flag("--switches", switches,
                 "what every switch of the step's software costs or saves: a replay each");
    options.flag("--config", config, "every value with its origin, too");
  }

  Answer answer() const {
    expect_kind(file, "experiment");
    const LoadedExperiment loaded = load_experiment(file, set);
    nlohmann::ordered_json explanation = explain(loaded);
    const auto& time = explanation.at("time");
    if (switches && !time.is_null())
      explanation["switches"] = switch_changes(loaded, time.at("value"));
    Answer answer = explanation_parts(explanation, config);
    answer.json = explanation;
    answer.warnings = loaded.warnings;
    return answer;
  }
};

const RegisterQuestion<ExplainQuestion> registered_explain(
    "explain", "what limits a run, and which inputs had no effect");

}  // namespace
}  // namespace orrery
