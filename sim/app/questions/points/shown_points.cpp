// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/points/shown_points.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

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
  return std::any_of(records.begin(), records.end(), [&](const RunRecord& record) {
    return shown_of(record, name).interval.has_value();
  });
}

std::string interval_text(const Shown& shown) {
  return shown.interval ? value_text(shown.interval->first, shown.unit) + " to " +
                              value_text(shown.interval->second, shown.unit)
                        : "-";
}

bool differ_in_trust(const std::vector<RunRecord>& records) {
  return std::any_of(records.begin(), records.end(), [&](const RunRecord& record) {
    return rests_on(record) != rests_on(records.front());
  });
}

bool differ_in_name(const std::vector<RunRecord>& records) {
  return std::any_of(records.begin(), records.end(),
                     [&](const RunRecord& record) { return record.name != records.front().name; });
}

ordered_json json_of(const RunRecord& record, const PointAxes& axes, std::size_t place,
                     const std::vector<Objective>& objectives) {
  ordered_json of_axes = ordered_json::object(), metrics = ordered_json::object(),
               intervals = ordered_json::object();
  for (std::size_t i = 0; i < axes.paths.size(); ++i) of_axes[axes.paths[i]] = axes.texts[i][place];
  for (const Objective& objective : objectives) {
    const Shown shown = shown_of(record, objective.name);
    metrics[objective.name] = shown.value ? ordered_json(*shown.value) : ordered_json();
    intervals[objective.name] = shown.interval
                                    ? ordered_json({shown.interval->first, shown.interval->second})
                                    : ordered_json();
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

/// The columns of --columns: each with p10 to p90 behind it where a metric has them.
class PickedColumns {
 public:
  PickedColumns(const StoredPoints& stored, const ShownPoints& shown,
                const std::vector<RunRecord>& records)
      : names_(shown.columns), rows_(shown.rows), records_(records) {
    for (const std::string& name : names_) columns_.push_back(stored.column(name));
  }

  void add_titles(std::vector<Table::Column>& titles) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const bool number = columns_[i].kind == PointColumn::Kind::kNumber;
      titles.push_back({names_[i], number ? Table::Align::kRight : Table::Align::kLeft});
      if (has_intervals(records_, names_[i]))
        titles.push_back({"p10 to p90", Table::Align::kRight});
    }
  }
  void add_cells(std::size_t place, std::vector<std::string>& cells) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      cells.push_back(text_of(columns_[i], rows_[place]));
      if (has_intervals(records_, names_[i]))
        cells.push_back(interval_text(shown_of(records_[place], names_[i])));
    }
  }
  void add_csv_titles(std::vector<std::string>& titles) const {
    for (const std::string& name : names_) {
      titles.push_back(name);
      if (!has_intervals(records_, name)) continue;
      titles.push_back(name + ".p10");
      titles.push_back(name + ".p90");
    }
  }
  void add_csv_cells(std::size_t place, std::vector<std::string>& cells) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const PointColumn& column = columns_[i];
      const std::size_t row = rows_[place];
      const bool number = column.kind == PointColumn::Kind::kNumber && column.has(row);
      cells.push_back(number            ? print_number(column.numbers[row])
                      : column.has(row) ? text_of(column, row)
                                        : "");
      if (!has_intervals(records_, names_[i])) continue;
      const auto interval = shown_of(records_[place], names_[i]).interval;
      cells.push_back(interval ? print_number(interval->first) : "");
      cells.push_back(interval ? print_number(interval->second) : "");
    }
  }
  ordered_json json(std::size_t place) const {
    ordered_json values = ordered_json::object();
    for (std::size_t i = 0; i < names_.size(); ++i)
      values[names_[i]] = exact(columns_[i], rows_[place]);
    return values;
  }

 private:
  const std::vector<std::string>& names_;
  const std::vector<std::size_t>& rows_;
  const std::vector<RunRecord>& records_;
  std::vector<PointColumn> columns_;
};

class Rows {
 public:
  Rows(const std::vector<RunRecord>& records, const ShownPoints& shown, const PointAxes& axes,
       const std::vector<Objective>& objectives, const std::optional<PickedColumns>& picked)
      : records_(records), shown_(shown), axes_(axes), objectives_(objectives), picked_(picked) {}

  Table table(std::size_t most) const {
    const bool names = !picked_ && shown_.by != "name" && differ_in_name(records_);
    const bool trust = !picked_ && differ_in_trust(records_);
    const std::size_t of_axes = picked_ ? 0 : std::min(axes_.paths.size(), kMostAxes);
    std::vector<Table::Column> titles = {{"point"}};
    if (!shown_.by.empty()) titles.push_back({column_title(shown_.by, {shown_.by})});
    if (picked_) picked_->add_titles(titles);
    if (names) titles.push_back({"name"});
    for (std::size_t i = 0; i < of_axes; ++i)
      titles.push_back({column_title(axes_.paths[i], axes_.paths), Table::Align::kRight});
    for (const Objective& objective : objectives()) {
      titles.push_back({objective.name, Table::Align::kRight});
      if (has_intervals(records_, objective.name))
        titles.push_back({"p10 to p90", Table::Align::kRight});
    }
    if (trust) titles.push_back({"rests on"});
    Table table(std::move(titles));
    for (std::size_t place = 0; place < records_.size(); ++place) {
      if (most > 0 && place == most) break;
      std::vector<std::string> cells = {short_identity(records_[place].identity)};
      if (!shown_.by.empty()) cells.push_back(shown_.groups[place]);
      if (picked_) picked_->add_cells(place, cells);
      if (names) cells.push_back(records_[place].name);
      for (std::size_t i = 0; i < of_axes; ++i) cells.push_back(axes_.texts[i][place]);
      for (const Objective& objective : objectives()) add_objective(objective.name, place, cells);
      if (trust) cells.push_back(rests_on(records_[place]));
      table.add_row(std::move(cells));
    }
    return table;
  }

  std::vector<std::vector<std::string>> csv() const {
    std::vector<std::vector<std::string>> rows = {{"identity", "name", "experiment"}};
    std::vector<std::string>& titles = rows.front();
    if (picked_) picked_->add_csv_titles(titles);
    if (!picked_) titles.insert(titles.end(), axes_.paths.begin(), axes_.paths.end());
    for (const Objective& objective : objectives())
      for (const char* ending : {"", ".p10", ".p90"}) titles.push_back(objective.name + ending);
    if (!picked_) titles.emplace_back("rests_on");
    for (std::size_t place = 0; place < records_.size(); ++place) {
      const RunRecord& record = records_[place];
      std::vector<std::string> cells = {record.identity, record.name, record.experiment};
      if (picked_) {
        picked_->add_csv_cells(place, cells);
      } else {
        for (const auto& texts : axes_.texts) cells.push_back(texts[place]);
        add_csv_objectives(record, cells);
        cells.push_back(rests_on(record));
      }
      rows.push_back(std::move(cells));
    }
    return rows;
  }

 private:
  /// Objectives that have columns of their own.
  std::vector<Objective> objectives() const {
    return picked_ ? std::vector<Objective>{} : objectives_;
  }

  void add_csv_objectives(const RunRecord& record, std::vector<std::string>& cells) const {
    for (const Objective& objective : objectives_) {
      const Shown shown = shown_of(record, objective.name);
      cells.push_back(shown.value ? print_number(*shown.value) : "");
      cells.push_back(shown.interval ? print_number(shown.interval->first) : "");
      cells.push_back(shown.interval ? print_number(shown.interval->second) : "");
    }
  }

  void add_objective(const std::string& name, std::size_t place,
                     std::vector<std::string>& cells) const {
    const Shown shown = shown_of(records_[place], name);
    cells.push_back(shown.value ? value_text(*shown.value, shown.unit) : "-");
    if (has_intervals(records_, name)) cells.push_back(interval_text(shown));
  }

  const std::vector<RunRecord>& records_;
  const ShownPoints& shown_;
  const PointAxes& axes_;
  const std::vector<Objective>& objectives_;
  const std::optional<PickedColumns>& picked_;
};

}  // namespace

std::string column_title(const std::string& path, const std::vector<std::string>& paths) {
  const auto last = [](const std::string& p) { return p.substr(p.rfind('.') + 1); };
  const auto alike = std::count_if(paths.begin(), paths.end(), [&](const std::string& other) {
    return last(other) == last(path);
  });
  return alike > 1 ? path : last(path);
}

std::string text_of(const PointColumn& column, std::size_t row) {
  if (!column.has(row)) return "-";
  if (column.kind == PointColumn::Kind::kWord) return column.word(row);
  if (column.kind == PointColumn::Kind::kFlag) return column.numbers[row] != 0 ? "true" : "false";
  return value_text(column.numbers[row], column.unit);
}

std::vector<Objective> objectives_of(const std::vector<std::string>& maximize,
                                     const std::vector<std::string>& minimize) {
  std::vector<Objective> objectives;
  objectives.reserve(maximize.size() + minimize.size());
  for (const std::string& name : maximize) objectives.push_back({name, true});
  for (const std::string& name : minimize) objectives.push_back({name, false});
  return objectives;
}

void take_by(Options& options, std::string& by, const std::string& what) {
  options.option("--by", by, "path, metric or name of which each value has " + what);
}

std::function<std::string(std::size_t row)> groups_by(const StoredPoints& stored,
                                                      const std::string& by) {
  if (by.empty()) return [](std::size_t) { return std::string(); };
  return [column = stored.column(by)](std::size_t row) { return text_of(column, row); };
}

void Quantile::take(Options& options) {
  options.choice("--at", at,
                 "p50 (default): points are compared by what is predicted; p90: by what holds in "
                 "nine of ten cases, the unfavourable end of p10 to p90",
                 {"p50", "p90"});
}

std::vector<PointColumn> compared_numbers(const StoredPoints& stored,
                                          const std::vector<Objective>& objectives,
                                          const Quantile& at) {
  std::vector<std::string> names, ends;
  for (const Objective& objective : objectives) {
    names.push_back(objective.name);
    ends.push_back(objective.name + (objective.maximize ? ".p10" : ".p90"));
  }
  std::vector<PointColumn> columns = stored.numbers(names);
  if (!at.p90()) return columns;
  const auto found = stored.table().columns(ends);
  for (std::size_t i = 0; i < columns.size(); ++i)
    for (const std::size_t row : stored.rows())
      if (found[i] && found[i]->has(row)) columns[i].numbers[row] = found[i]->numbers[row];
  return columns;
}

std::string value_text(double value, const std::string& unit) {
  if (!unit.empty() && unit != "1") return format_si(value, unit);
  // Counts and shares have no unit that a prefix would help.
  if (value == std::nearbyint(value)) return print_number(value);
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::general, 4);
  return {digits.data(), end.ptr};
}

std::string considered(const StoredPoints& stored, std::size_t shown, const std::string& what) {
  return std::to_string(shown) + " " + what + " of " + std::to_string(stored.rows().size()) +
         " points\n" + stored.left_out();
}

Answer shown_points(const StoredPoints& stored, const ShownPoints& shown,
                    const std::vector<Objective>& objectives, std::size_t most) {
  std::vector<RunRecord> records;
  records.reserve(shown.rows.size());
  for (const std::size_t row : shown.rows) records.push_back(stored.record(row));
  const PointAxes axes = axes_of(records);
  std::optional<PickedColumns> picked;
  if (!shown.columns.empty()) picked.emplace(stored, shown, records);
  const Rows rows(records, shown, axes, objectives, picked);
  Answer answer;
  if (!records.empty()) answer.add(rows.table(most));
  if (most > 0 && records.size() > most)
    answer.add("... and " + std::to_string(records.size() - most) +
               " more: --csv and --json have all\n");
  answer.csv = rows.csv();
  ordered_json points = ordered_json::array();
  for (std::size_t i = 0; i < records.size(); ++i) {
    points.push_back(json_of(records[i], axes, i, objectives));
    if (!shown.by.empty()) points.back()["by"] = shown.groups[i];
    if (picked) points.back()["columns"] = picked->json(i);
  }
  ordered_json of_objectives = ordered_json::array();
  for (const Objective& objective : objectives)
    of_objectives.push_back(
        {{"name", objective.name}, {"better", objective.maximize ? "most" : "least"}});
  answer.json = {{"objectives", std::move(of_objectives)},
                 {"considered", stored.rows().size()},
                 {"axes", axes.paths},
                 {"points", std::move(points)}};
  return answer;
}

}  // namespace orrery
