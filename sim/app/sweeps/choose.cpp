// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/diagnostics.h"
#include "sim/results/metric_table.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"
#include "sim/units/unit_table.h"

namespace orrery {
namespace {

enum class Quantile { kNone, kP10, kP90 };

/// "step_time_s.p90" is a metric and a quantile of it.
std::pair<std::string, Quantile> split(const std::string& name) {
  for (const auto& [ending, quantile] :
       {std::pair{".p10", Quantile::kP10}, std::pair{".p90", Quantile::kP90}}) {
    if (name.ends_with(ending)) return {name.substr(0, name.rfind('.')), quantile};
  }
  return {name, Quantile::kNone};
}

/// The value of a metric or of one of its quantiles, which only fitted devices have.
std::optional<NamedValue> metric_of(const RunRecord& record, const std::string& name) {
  const auto [metric_name, quantile] = split(name);
  const Metric* metric = record.find(metric_name);
  if (metric == nullptr) return std::nullopt;
  if (quantile == Quantile::kNone) return NamedValue{metric->value, metric->unit};
  if (!metric->interval) return std::nullopt;
  const auto& [low, high] = *metric->interval;
  return NamedValue{quantile == Quantile::kP10 ? low : high, metric->unit};
}

bool is_plain_number(const std::string& text) {
  try {
    parse_number(text);
    return true;
  } catch (const UnitError&) {
    return false;
  }
}

/// A limit in the unit of its metric, which a number without a unit has.
/// @throws UnitError
double limit_of(const std::string& text, const std::string& metric_unit) {
  const std::optional<Unit> unit = find_unit(metric_unit);
  if (!unit || is_plain_number(text)) return parse_number(text);
  return parse_quantity(text, unit->dimension) / unit->in_base_units();
}

/// What counts of a metric: at p90 the end of its interval where it is `more`, else the one where
/// it is less; itself where it has no interval.
std::optional<NamedValue> counted(const RunRecord& record, const std::string& name, ChooseAt at,
                                  bool more) {
  if (at == ChooseAt::kP90)
    if (auto end = metric_of(record, name + (more ? ".p90" : ".p10"))) return end;
  return value_of(record, name);
}

double excess(const RunRecord& record, const ChooseConfig& choice, bool upper) {
  double sum = 0;
  for (const auto& [name, limit] : upper ? choice.at_most : choice.at_least) {
    const auto metric = counted(record, name, choice.at, upper);
    if (!metric) return std::numeric_limits<double>::infinity();
    const double bound = limit_of(limit.text(), find_metric(split(name).first)->unit);
    const double beyond = upper ? metric->value - bound : bound - metric->value;
    if (beyond > 0) sum += bound == 0 ? beyond : beyond / std::abs(bound);
  }
  return sum;
}

bool better(const ChooseConfig& choice, const RunRecord& candidate, const RunRecord& best) {
  const std::string& name = choice.maximize.empty() ? choice.minimize : choice.maximize;
  if (name.empty()) return false;
  const bool less = choice.maximize.empty();
  const auto a = counted(candidate, name, choice.at, less),
             b = counted(best, name, choice.at, less);
  if (!a || !b) return a.has_value();
  return less ? a->value < b->value : a->value > b->value;
}

/// Whether experiments of a kind have a metric, by the list of kinds that it is declared with.
bool has_metric(const std::string& kind, const MetricInfo& metric) {
  if (kind.empty() || metric.experiments == "all") return true;
  const std::string list = ", " + metric.experiments + ",";
  return list.find(", " + kind + ",") != std::string::npos;
}

/// Whether configurations have a path, or a part of the machine or model that has a name there.
bool has_path(const std::vector<std::string>& paths, const std::string& name) {
  const std::string named = name + "." + name.substr(name.rfind('.') + 1);
  return std::ranges::any_of(
      paths, [&](const std::string& path) { return path == name || path == named; });
}

/// Finds fault with a name. @return whether it is right
bool check_name(const std::string& name, const config::Node& where, const PointNames& names,
                config::Diagnostics& diagnostics) {
  const std::vector<std::string>& paths = names.paths;
  const MetricInfo* metric = find_metric(split(name).first);
  if (metric != nullptr && !metric->unit.empty()) {
    if (has_metric(names.kind, *metric)) return true;
    std::vector<std::string> others;
    for (const std::string& other : metric_names())
      if (has_metric(names.kind, *find_metric(other))) others.push_back(other);
    diagnostics.error(where.where(), where.length(),
                      "experiments of kind " + names.kind + " have no '" + name + "'",
                      nearest_name(name, others),
                      {"these have it: " + metric->experiments,
                       "`orrery describe metrics` says which kinds have which"});
    return false;
  }
  std::vector<std::string> known = metric_names();
  known.insert(known.end(), paths.begin(), paths.end());
  if (has_path(paths, name)) return true;
  diagnostics.error(where.where(), where.length(), "unknown metric '" + name + "'",
                    nearest_name(name, known),
                    {paths.empty() ? "`orrery describe metrics` lists them"
                                   : "`orrery describe metrics` lists them; a path of the "
                                     "configuration, such as parallel.tp, will do too"});
  return false;
}

void check_limits(const std::map<std::string, config::Node>& limits, const config::Node& written,
                  const std::string& kind, config::Diagnostics& diagnostics) {
  for (const auto& [name, limit] : limits) {
    const config::Node& where = *written.find(name);
    if (!check_name(name, where, {kind, {}}, diagnostics)) continue;
    const std::string unit = find_metric(split(name).first)->unit;
    try {
      limit_of(limit.text(), unit);
    } catch (const UnitError& error) {
      diagnostics.error(where.where(), where.length(), name + ": " + error.what(),
                        error.suggestion());
    }
  }
}

}  // namespace

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const auto& [metric_name, metric] : metric_table())
    if (!metric.unit.empty()) names.push_back(metric.name);
  return names;
}

std::optional<NamedValue> value_of(const RunRecord& record, const std::string& name) {
  if (auto metric = metric_of(record, name)) return metric;
  const std::optional<double> value = record.parameter(name);
  if (!value) return std::nullopt;
  NamedValue named{*value, {}};
  for (const Parameter& parameter : record.base->parameters)
    if (parameter.path == name) named.unit = parameter.unit;
  return named;
}

double excess_over_limits(const ChooseConfig& choice, const RunRecord& record) {
  if (record.status != RunStatus::kOk) return std::numeric_limits<double>::infinity();
  return excess(record, choice, true) + excess(record, choice, false);
}

bool keeps_limits(const ChooseConfig& choice, const RunRecord& record) {
  return excess_over_limits(choice, record) == 0;
}

const RunRecord* choose(const ChooseConfig& choice, const std::vector<const RunRecord*>& row) {
  const RunRecord* best = nullptr;
  for (const RunRecord* record : row) {
    if (!keeps_limits(choice, *record)) continue;
    if (best == nullptr || better(choice, *record, *best)) best = record;
  }
  return best;
}

void check_choice(const ChooseConfig& choice, const config::Node& written, const PointNames& names,
                  config::Diagnostics& diagnostics) {
  for (const auto& [key, name] :
       {std::pair("maximize", choice.maximize), std::pair("minimize", choice.minimize)})
    if (!name.empty()) check_name(name, *written.find(key), names, diagnostics);
  for (const auto& [key, limits] :
       {std::pair("at_most", choice.at_most), std::pair("at_least", choice.at_least)})
    if (!limits.empty()) check_limits(limits, *written.find(key), names.kind, diagnostics);
}

void check_objectives(const config::Node& written, const PointNames& names,
                      config::Diagnostics& diagnostics) {
  for (const config::Node& objective : written.items())
    for (const auto& entry : objective.entries())
      check_name(entry.value.text(), entry.value, names, diagnostics);
}

void check_table(const config::Node& written, const PointNames& names,
                 config::Diagnostics& diagnostics) {
  if (const config::Node* rows = written.find("rows"))
    for (const config::Node& row : items_of(*rows))
      if (!has_path(names.paths, row.text()))
        diagnostics.error(row.where(), row.length(), "unknown key '" + row.text() + "'",
                          nearest_name(row.text(), names.paths));
  if (const config::Node* columns = written.find("columns"))
    for (const config::Node& column : items_of(*columns))
      check_name(column.text(), column, names, diagnostics);
  if (const config::Node* gain = written.find("gain"))
    for (const auto& entry : gain->entries())
      check_name(entry.value.text(), entry.value, names, diagnostics);
}

}  // namespace orrery
