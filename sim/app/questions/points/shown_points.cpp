// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/shown_points.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/units/comma_separated.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostAxes = 8;

/// An objective of a point: its value and interval, as the record has it.
struct Shown {
  std::optional<double> value;
  std::optional<std::pair<double, double>> interval;
  std::string unit;
};

Shown shown_of(const RunRecord& record, const std::string& name) {
  if (const Metric* metric = record.find(name))
    return {metric->value, metric->interval, metric->unit};
  for (const bool low : {true, false}) {
    if (!name.ends_with(low ? ".p10" : ".p90")) continue;
    const Metric* metric = record.find(name.substr(0, name.rfind('.')));
    if (metric != nullptr && metric->interval)
      return {low ? metric->interval->first : metric->interval->second, {}, metric->unit};
  }
  for (const Parameter& parameter : record.parameters())
    if (parameter.path == name) return {parameter.value, {}, parameter.unit};
  return {};
}

bool has_intervals(const std::vector<RunRecord>& records, const std::string& name) {
  return std::ranges::any_of(records, [&](const RunRecord& record) {
    return shown_of(record, name).interval.has_value();
  });
}

std::string interval_text(const Shown& shown) {
  if (!shown.interval) return "-";
  return fmt::format("{} to {}", value_text(shown.interval->first, shown.unit),
                     value_text(shown.interval->second, shown.unit));
}

/// Whether a text of points is not the same of all.
template <class Text>
bool differ(const std::vector<RunRecord>& records, Text text_of_record) {
  return std::ranges::any_of(records, [&](const RunRecord& record) {
    return std::invoke(text_of_record, record) != std::invoke(text_of_record, records.front());
  });
}

ordered_json json_of(const RunRecord& record, const PointAxes& axes, std::size_t place,
                     const std::vector<Objective>& objectives) {
  ordered_json of_axes = ordered_json::object(), metrics = ordered_json::object(),
               intervals = ordered_json::object();
  for (std::size_t i = 0; i < axes.paths.size(); ++i) of_axes[axes.paths[i]] = axes.texts[i][place];
  for (const Objective& objective : objectives) {
    const Shown shown = shown_of(record, objective.name);
    metrics[objective.name] = or_null(shown.value);
    intervals[objective.name] = or_null(shown.interval);
  }
  return {{"identity", record.identity},      {"name", record.name},
          {"experiment", record.experiment},  {"rests_on", rests_on(record)},
          {"axes", std::move(of_axes)},       {"metrics", std::move(metrics)},
          {"intervals", std::move(intervals)}};
}

/// A cell for programs: numbers without units, words and flags unchanged.
ordered_json exact(const PointColumn& column, std::size_t row) {
  if (!column.has(row)) return nullptr;
  if (column.kind == PointColumn::Kind::kWord) return column.word(row);
  if (column.kind == PointColumn::Kind::kFlag) return column.numbers[row] != 0;
  return column.numbers[row];
}

/// A column of the points that are shown, for people or as CSV.
struct ShownColumn {
  Table::Column title;
  std::function<std::string(std::size_t place)> cell;
};
using ShownColumns = std::vector<ShownColumn>;

/// The points that a table shows, and its columns.
struct Picked {
  const ShownPoints& shown;
  const std::string& by;
  std::vector<std::string> names;  ///< names of --columns
  std::vector<RunRecord> records;
  PointAxes axes;
  std::vector<PointColumn> columns;  ///< columns of --columns, for axes and objectives
  std::vector<Objective> objectives;

  bool asked() const { return !names.empty(); }

  void add_p10_to_p90(const std::string& name, ShownColumns& all) const {
    if (!has_intervals(records, name)) return;
    all.push_back({{"p10 to p90", Table::Align::kRight},
                   [=, this](std::size_t p) { return interval_text(shown_of(records[p], name)); }});
  }
  void add_both_ends(const std::string& name, ShownColumns& all) const {
    for (const bool low : {true, false})
      all.push_back({{name + (low ? ".p10" : ".p90")}, [=, this](std::size_t p) -> std::string {
                       const auto interval = shown_of(records[p], name).interval;
                       if (!interval) return "";
                       return print_number(low ? interval->first : interval->second);
                     }});
  }

  /// The columns that `--columns` names, each with p10 to p90 behind it where a metric has them.
  void add_asked(ShownColumns& all) const {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const bool number = columns[i].kind == PointColumn::Kind::kNumber;
      all.push_back({{names[i], number ? Table::Align::kRight : Table::Align::kLeft},
                     [=, this](std::size_t p) { return text_of(columns[i], shown.rows[p]); }});
      add_p10_to_p90(names[i], all);
    }
  }

  /// Columns that tell points apart, and the objectives.
  void add_usual(ShownColumns& all) const {
    constexpr auto kRight = Table::Align::kRight;
    if (by != "name" && differ(records, &RunRecord::name))
      all.push_back({{"name"}, [this](std::size_t p) { return records[p].name; }});
    for (std::size_t i = 0; i < std::min(axes.paths.size(), kMostAxes); ++i)
      all.push_back({{column_title(axes.paths[i], axes.paths), kRight},
                     [=, this](std::size_t p) { return axes.texts[i][p]; }});
    for (const Objective& objective : objectives) {
      all.push_back({{objective.name, kRight}, [&, this](std::size_t p) -> std::string {
                       const Shown shown_value = shown_of(records[p], objective.name);
                       return shown_value.value ? value_text(*shown_value.value, shown_value.unit)
                                                : "-";
                     }});
      add_p10_to_p90(objective.name, all);
    }
    if (differ(records, rests_on))
      all.push_back({{"rests on"}, [this](std::size_t p) { return rests_on(records[p]); }});
  }

  ShownColumns for_people() const {
    ShownColumns all = {
        {{"point"}, [this](std::size_t p) { return short_identity(records[p].identity); }}};
    if (!by.empty())
      all.push_back({{column_title(by, {by})}, [this](std::size_t p) { return shown.groups[p]; }});
    asked() ? add_asked(all) : add_usual(all);
    return all;
  }

  ShownColumns for_csv() const {
    ShownColumns all = {{{"identity"}, [this](std::size_t p) { return records[p].identity; }},
                        {{"name"}, [this](std::size_t p) { return records[p].name; }},
                        {{"experiment"}, [this](std::size_t p) { return records[p].experiment; }}};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      all.push_back({{names[i]}, [=, this](std::size_t p) -> std::string {
                       const PointColumn& column = columns[i];
                       const std::size_t row = shown.rows[p];
                       if (!column.has(row)) return "";
                       return column.kind == PointColumn::Kind::kNumber
                                  ? print_number(column.numbers[row])
                                  : text_of(column, row);
                     }});
      if (has_intervals(records, names[i])) add_both_ends(names[i], all);
    }
    if (asked()) return all;
    for (std::size_t i = 0; i < axes.paths.size(); ++i)
      all.push_back({{axes.paths[i]}, [=, this](std::size_t p) { return axes.texts[i][p]; }});
    for (const Objective& objective : objectives) {
      all.push_back({{objective.name}, [&, this](std::size_t p) {
                       return number_text(shown_of(records[p], objective.name).value);
                     }});
      add_both_ends(objective.name, all);
    }
    all.push_back({{"rests_on"}, [this](std::size_t p) { return rests_on(records[p]); }});
    return all;
  }
};

std::vector<std::string> cells_of(const ShownColumns& columns, std::size_t place) {
  std::vector<std::string> cells;
  for (const ShownColumn& column : columns) cells.push_back(column.cell(place));
  return cells;
}

}  // namespace

std::string column_title(const std::string& path, const std::vector<std::string>& paths) {
  const auto last = [](const std::string& p) { return p.substr(p.rfind('.') + 1); };
  const auto alike = std::ranges::count_if(
      paths, [&](const std::string& other) { return last(other) == last(path); });
  return alike > 1 ? path : last(path);
}

std::string text_of(const PointColumn& column, std::size_t row) {
  if (!column.has(row)) return "-";
  if (column.kind == PointColumn::Kind::kWord) return column.word(row);
  if (column.kind == PointColumn::Kind::kFlag) return column.numbers[row] != 0 ? "true" : "false";
  return value_text(column.numbers[row], column.unit);
}

void PickingQuestion::take_at(Options& options) {
  options.choice("--at", at,
                 "p50 (default): points are compared by what is predicted; p90: by what holds in "
                 "nine of ten cases, the unfavourable end of p10 to p90",
                 {"p50", "p90"});
}

void PickingQuestion::take_by_and_columns(Options& options, const std::string& what) {
  options.option("--by", by, "path, metric or name of which each value has " + what);
  options.columns(columns);
}

std::vector<PointColumn> PickingQuestion::compared_numbers(
    const StoredPoints& stored, const std::vector<Objective>& objectives) const {
  std::vector<std::string> names, ends;
  for (const Objective& objective : objectives) {
    names.push_back(objective.name);
    ends.push_back(objective.name + (objective.maximize ? ".p10" : ".p90"));
  }
  std::vector<PointColumn> numbers = stored.numbers(names);
  if (at != "p90") return numbers;
  const auto found = stored.table().columns(ends);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    for (const std::size_t row : stored.rows())
      if (found[i] && found[i]->has(row)) numbers[i].numbers[row] = found[i]->numbers[row];
  return numbers;
}

std::map<std::string, std::vector<std::size_t>> PickingQuestion::groups_of(
    const StoredPoints& stored, const std::vector<PointColumn>& compared) const {
  std::optional<PointColumn> group;
  if (!by.empty()) group = stored.column(by);
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const std::size_t row : stored.rows())
    if (std::ranges::all_of(compared, [row](const PointColumn& column) { return column.has(row); }))
      groups[group ? text_of(*group, row) : ""].push_back(row);
  return groups;
}

std::string number_text(const std::optional<double>& value) {
  return value ? print_number(*value) : "";
}

std::string value_text(double value, const std::string& unit) {
  if (!unit.empty() && unit != "1") return format_si(value, unit);
  // Counts and shares have no unit that a prefix would help.
  if (value == std::nearbyint(value)) return print_number(value);
  return fmt::format("{:.4g}", value);
}

std::string considered(const StoredPoints& stored, std::size_t shown, const std::string& what) {
  return fmt::format("{} {} of {} points\n{}", shown, what, stored.rows().size(),
                     stored.left_out());
}

Answer PickingQuestion::show(const std::string& schema, const StoredPoints& stored,
                             const ShownPoints& shown, const std::vector<Objective>& objectives,
                             std::size_t most) const {
  Picked picked{shown, by, {}, {}, {}, {}, objectives};
  for (const std::string_view name : comma_separated(columns)) picked.names.emplace_back(name);
  for (const std::size_t row : shown.rows) picked.records.push_back(stored.record(row));
  for (const std::string& name : picked.names) picked.columns.push_back(stored.column(name));
  const std::vector<RunRecord>& records = picked.records;
  picked.axes = axes_of(records);
  const ShownColumns for_people = picked.for_people(), for_csv = picked.for_csv();
  std::vector<Table::Column> titles;
  for (const ShownColumn& column : for_people) titles.push_back(column.title);
  Table table(std::move(titles));
  Answer answer;
  answer.csv.emplace_back();
  for (const ShownColumn& column : for_csv) answer.csv.front().push_back(column.title.title);
  ordered_json points = ordered_json::array();
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (most == 0 || i < most) table.add_row(cells_of(for_people, i));
    answer.csv.push_back(cells_of(for_csv, i));
    points.push_back(json_of(records[i], picked.axes, i, objectives));
    if (!by.empty()) points.back()["by"] = shown.groups[i];
    for (std::size_t c = 0; c < picked.names.size(); ++c)
      points.back()["columns"][picked.names[c]] = exact(picked.columns[c], shown.rows[i]);
  }
  if (!table.empty()) answer.add(std::move(table));
  if (most > 0 && records.size() > most)
    answer.add(fmt::format("... and {} more: --csv and --json have all\n", records.size() - most));
  ordered_json of_objectives = ordered_json::array();
  for (const Objective& objective : objectives)
    of_objectives.push_back(
        {{"name", objective.name}, {"better", objective.maximize ? "most" : "least"}});
  answer.json = {{"schema", schema},
                 {"store", choice.store},
                 {"where", choice.where},
                 {"by", by},
                 {"at", at},
                 {"objectives", std::move(of_objectives)},
                 {"considered", stored.rows().size()},
                 {"axes", picked.axes.paths},
                 {"points", std::move(points)}};
  return answer;
}

}  // namespace orrery
