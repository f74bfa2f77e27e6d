// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/search/told_points.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/sweeps/search/proposal.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/config/load.h"
#include "sim/results/metric_table.h"
#include "sim/units/spelling.h"

namespace orrery {

using config::Schema;

const Schema<ToldPoint>& ToldPoint::schema() {
  static const auto schema =
      Schema<ToldPoint>("point", "a point that a program tells of")
          .optional("point", &ToldPoint::point, "identity, as `sweep ask` gives it")
          .optional("case", &ToldPoint::case_name, "name of its case; default: the first")
          .optional("variant", &ToldPoint::variant, "name of its variant; default: the base alone")
          .required("parameters", &ToldPoint::parameters, "values: {path: value, ...}")
          .optional("objectives", &ToldPoint::objectives,
                    "metrics that were found elsewhere, in SI base units")
          .optional("infeasible", &ToldPoint::infeasible, "reason why it has no objectives")
          .check(
              "a point has objectives or a reason why it has none",
              [](const ToldPoint& t) { return t.objectives.empty() || t.infeasible.empty(); },
              "infeasible");
  return schema;
}

/// A told point in a plan of its own.
struct ToldPoints::Placed {
  ToldPoint told;
  config::Node written;
  std::vector<std::uint64_t> places;       ///< one for each way in which conditions can come out
  std::uint64_t place = 0;                 ///< the one of them that is the point
  std::optional<std::size_t> excluded_by;  ///< rule of `where`
};

namespace {

const DeclaredMetric kSource{
    {"source", "", "who found a result that is not ours: told (sweep tell)", "all"}};

/// The index of a name in a list, by what a told point says.
template <class List, class NameOf>
std::optional<std::size_t> index_of(const std::string& name, const char* key, const List& list,
                                    const NameOf& name_of, const config::Node& written,
                                    config::Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    names.push_back(name_of(list[i]));
    if (names.back() == name) return i;
  }
  const config::Node& where = *written.find(key);
  diagnostics.error(where.where(), where.length(), std::string("no ") + key + " is '" + name + "'",
                    nearest_name(name, names));
  return std::nullopt;
}

/// Where the point is among its places, and which rule excludes it.
template <class Placed>
void look_up(Placed& point, PlanCursor& cursor, config::Diagnostics& diagnostics) {
  for (const std::uint64_t place : point.places) {
    point.place = place;
    cursor.seek(place);
    if (cursor.kind() != PlaceKind::kNone) break;
  }
  if (cursor.kind() == PlaceKind::kExcluded) point.excluded_by = cursor.rule();
  if (cursor.group() == nullptr || !cursor.group()->load(cursor.point().settings))
    cursor.whole();  // throws what is wrong with a value
  const std::string identity = cursor.identity();
  if (point.told.is_result() && identity.empty())
    diagnostics.error(point.written.where(), 1,
                      "nobody can have found anything of a point that cannot be");
  if (point.told.point.empty() || point.told.point == identity) return;
  const config::Node& where = *point.written.find("point");
  diagnostics.error(where.where(), where.length(), "these parameters are those of another point",
                    identity);
}

void check_objectives_of(const ToldPoint& told, const config::Node& written,
                         config::Diagnostics& diagnostics) {
  for (const auto& [name, value] : told.objectives) {
    const MetricInfo* metric = find_metric(name);
    if (metric != nullptr && !metric->unit.empty()) continue;
    const config::Node& where = *written.find("objectives")->find(name);
    diagnostics.error(where.where(), where.length(), "unknown metric '" + name + "'",
                      nearest_name(name, metric_names()), {"`orrery describe metrics` lists them"});
  }
}

/// What cannot be has no identity.
nlohmann::ordered_json or_null(const std::string& identity) {
  return identity.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(identity);
}

}  // namespace

ToldPoints::ToldPoints(const Sweep& sweep, ResultStore& store, std::string name)
    : sweep_(sweep), store_(store), name_(std::move(name)) {}

std::vector<ToldPoints::Placed> ToldPoints::read(const std::string& line,
                                                 config::Diagnostics& diagnostics) const {
  const std::size_t first = line.find_first_not_of(" \t");
  if (line[first] != '{' && line[first] != '[')  // of any file; it is not shown
    diagnostics.error({name_, static_cast<int>(line_), static_cast<int>(first) + 1}, 1,
                      "expected a point as JSON, {\"parameters\": {...}}, or a list of them");
  diagnostics.throw_if_errors();
  const config::Node node =
      config::parse_yaml(std::string(line_ - 1, '\n') + line, name_, diagnostics);
  diagnostics.throw_if_errors();
  std::vector<Placed> points;
  const auto read_one = [&](const config::Node& written) {
    points.push_back(
        {config::read<ToldPoint>(written, diagnostics, sweep_.library), written, {}, 0, {}});
    check_objectives_of(points.back().told, written, diagnostics);
  };
  if (node.is_sequence()) {
    for (const config::Node& item : node.items()) read_one(item);
  } else {
    read_one(node);
  }
  diagnostics.throw_if_errors();
  return points;
}

/// The row of a point: its case, and the settings of its variant.
std::optional<SweepRow> ToldPoints::row_of(const Placed& point,
                                           config::Diagnostics& diagnostics) const {
  SweepRow row;
  if (!point.told.case_name.empty()) {
    const auto index = index_of(
        point.told.case_name, "case", sweep_.config.cases,
        [](const SweepCaseConfig& c) { return c.name; }, point.written, diagnostics);
    if (!index) return std::nullopt;
    row.case_index = static_cast<std::uint32_t>(*index);
  }
  row.name = sweep_.config.cases[row.case_index].name;
  if (point.told.variant.empty()) return row;
  std::vector<SweepRow> rows;
  for (const SweepRow& other : sweep_.rows)
    if (other.case_index == row.case_index) rows.push_back(other);
  const auto index = index_of(
      point.told.variant, "variant", rows, [](const SweepRow& r) { return r.name; }, point.written,
      diagnostics);
  if (!index) return std::nullopt;
  return rows[*index];
}

/// A plan of the points of a line: those of one case and variant that set the same keys are the
/// steps of one axis, so they share what they have in common.
Sweep ToldPoints::plan_of(std::vector<Placed>& points, config::Diagnostics& diagnostics) const {
  std::map<std::vector<std::string>, std::vector<Placed*>> alike;
  for (Placed& point : points) {
    std::vector<std::string> shape = {point.told.case_name, point.told.variant};
    for (const auto& entry : point.written.find("parameters")->entries())
      shape.push_back(entry.key);
    alike[shape].push_back(&point);
  }
  Sweep plan = sweep_;
  plan.blocks.clear();
  for (const auto& [shape, members] : alike) {
    const auto row = row_of(*members.front(), diagnostics);
    if (!row) continue;
    add_blocks(members, *row, plan);
  }
  diagnostics.throw_if_errors();
  plan.texts = diagnostics;
  return plan;
}

/// Adds a block for each way in which the conditions can come out.
void ToldPoints::add_blocks(const std::vector<Placed*>& members, const SweepRow& row,
                            Sweep& plan) const {
  PlanBlock block;
  block.row = static_cast<std::uint32_t>(plan.rows.size());
  plan.rows.push_back(row);
  std::vector<AxisKey> keys = keys_of(*members.front()->written.find("parameters"));
  std::vector<std::vector<config::Node>> steps;
  for (const Placed* member : members) {
    std::vector<config::Node>& step = steps.emplace_back();
    for (const auto& entry : member->written.find("parameters")->entries())
      step.push_back(entry.value);
  }
  block.size = keys.empty() ? 1 : members.size();
  if (!keys.empty())
    block.axes.push_back(std::make_shared<ListedAxis>(std::move(keys), std::move(steps)));
  const std::size_t conditions = plan.rules[row.case_index].when.size();
  for (std::size_t way = 0; way < std::size_t{1} << conditions; ++way) {
    block.conditions.clear();
    for (std::size_t i = 0; i < conditions; ++i) block.conditions.push_back(((way >> i) & 1U) != 0);
    block.first = plan.places();
    plan.blocks.push_back(block);
    for (std::size_t i = 0; i < members.size(); ++i)
      members[i]->places.push_back(block.first + (block.axes.empty() ? 0 : i));
  }
}

/// What was found elsewhere, under a name of its own.
void ToldPoints::save(const Placed& point, PlanCursor& cursor) {
  const LoadedExperiment& whole = cursor.whole();
  RunRecord record;
  record.identity = told_identity(whole.identity);
  record.experiment = whole.experiment->kind;
  record.name = cursor.row().name;
  record.status = point.told.infeasible.empty() ? RunStatus::kOk : RunStatus::kInfeasible;
  record.reason = point.told.infeasible;
  record.base = configuration_of(whole);
  add_label(record, kSource, "told");
  for (const auto& [name, value] : point.told.objectives)
    record.metrics.push_back({name, value, find_metric(name)->unit});
  store_.save(record, times_now());
}

nlohmann::ordered_json ToldPoints::answer_of(const std::string& identity, const RunRecord& record,
                                             std::uint32_t case_index) const {
  nlohmann::ordered_json json = {{"point", or_null(identity)},
                                 {"status", to_string(record.status)}};
  if (record.status != RunStatus::kOk) {
    json["reason"] = record.reason;
    return json;
  }
  const SweepCaseConfig& described = sweep_.config.cases[case_index];
  json["objectives"] = nlohmann::ordered_json::object();
  for (const ObjectiveConfig& objective : sweep_.config.objectives_of(described))
    if (const auto value = value_of(record, objective.name()))
      json["objectives"][objective.name()] = value->value;
  json["violation"] = excess_over_limits(described.choose, record);
  json["metrics"] = nlohmann::ordered_json::object();
  for (const Metric& metric : record.metrics) json["metrics"][metric.name] = metric.value;
  return json;
}

std::vector<nlohmann::ordered_json> ToldPoints::take(const std::string& line,
                                                     const SweepOptions& options) {
  ++line_;
  config::Diagnostics diagnostics = sweep_.texts;
  std::vector<Placed> points = read(line, diagnostics);
  if (points.empty()) return {};
  const Sweep plan = plan_of(points, diagnostics);
  PlanCursor cursor(plan);
  std::vector<std::uint64_t> places;
  for (Placed& point : points) {
    look_up(point, cursor, diagnostics);
    if (!point.excluded_by && !point.told.is_result()) places.push_back(point.place);
  }
  diagnostics.throw_if_errors();
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  SweepOptions of_line = options;
  of_line.keep_all = true;
  for (const std::uint64_t place : places) append(of_line.places, static_cast<std::size_t>(place));
  const SweepResults results = places.empty() ? SweepResults{} : run_sweep(plan, store_, of_line);
  std::map<std::uint64_t, const RunRecord*> records;
  for (const PointResult& kept : results.kept) records[kept.point.place] = &kept.record;
  std::vector<nlohmann::ordered_json> answers;
  for (const Placed& point : points) {
    cursor.seek(point.place);
    const std::string identity = cursor.identity();
    const auto record = records.find(point.place);
    if (point.excluded_by) {
      const std::string& rule = plan.rules[cursor.case_index()].where[*point.excluded_by].text;
      answers.push_back({{"point", or_null(identity)}, {"status", "excluded"}, {"reason", rule}});
    } else if (record != records.end()) {
      answers.push_back(answer_of(identity, *record->second, cursor.case_index()));
    } else {
      save(point, cursor);
      answers.push_back({{"point", identity}, {"status", "told"}});
    }
  }
  return answers;
}

}  // namespace orrery
