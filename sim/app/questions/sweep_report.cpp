// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/sweep_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/app/questions/sweep_columns.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/config/library.h"

namespace orrery {
namespace {

std::string number(const char* format, double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// The records of one name of one case, in order.
struct Row {
  std::string name;
  std::vector<const RunRecord*> records;
  std::vector<const SweepPoint*> points;
};

/// The name of its variant and what it has of the axes that have rows.
std::string row_name(const SweepPoint& point, const SweepCaseConfig& described) {
  const std::vector<std::string>& keys = described.table.rows;
  if (keys.empty()) return *point.name;
  const auto is_other = [&keys](const config::Assignment& setting) {
    return std::find(keys.begin(), keys.end(), setting.path) == keys.end();
  };
  SweepPoint of_rows = point;
  of_rows.of_variant = 0;
  std::erase_if(of_rows.settings, is_other);
  const bool variant = *point.name != described.name;
  return (variant ? *point.name + ": " : std::string()) + Sweep::axes(of_rows);
}

std::vector<Row> rows_of(const Sweep& sweep, const SweepResults& results, std::size_t case_index) {
  std::vector<Row> rows;
  for (const PointResult& result : results.kept) {
    if (result.point.case_index != case_index) continue;
    const std::string name = row_name(result.point, sweep.config.cases[case_index]);
    auto row = rows.begin();
    while (row != rows.end() && row->name != name) ++row;
    if (row == rows.end()) row = rows.insert(rows.end(), {name, {}, {}});
    row->records.push_back(&result.record);
    row->points.push_back(&result.point);
  }
  return rows;
}

/// Why a row has no point to show: nothing fits, or nothing keeps the limits.
std::string no_choice(const Row& row) {
  for (const RunRecord* record : row.records) {
    if (record->status == RunStatus::kOk) return "no point keeps the limits of this table";
  }
  return row.records.front()->reason;
}

const SweepPoint& point_of(const Row& row, const RunRecord* chosen) {
  for (std::size_t i = 0; i < row.records.size(); ++i) {
    if (row.records[i] == chosen) return *row.points[i];
  }
  return *row.points.front();
}

/// Whether the points of a row differ in the number of nodes, so that the chosen one is worth
/// saying.
bool nodes_vary(const Row& row) {
  const auto nodes = row.records.front()->parameter("nodes");
  return std::any_of(row.records.begin(), row.records.end(), [&nodes](const RunRecord* record) {
    return record->parameter("nodes") != nodes;
  });
}

/// The records that the table shows: what `choose` optimises, or all of it that keep the limits. At
/// least one: the first stands for a row without any.
std::vector<const RunRecord*> shown(const ChooseConfig& choice, const Row& row) {
  std::vector<const RunRecord*> records;
  if (!choice.maximize.empty() || !choice.minimize.empty()) {
    if (const RunRecord* chosen = choose(choice, row.records)) records.push_back(chosen);
  } else {
    for (const RunRecord* record : row.records)
      if (record->status != RunStatus::kOk || keeps_limits(choice, *record))
        records.push_back(record);
  }
  if (records.empty()) records.push_back(row.records.front());
  return records;
}

std::string title(const Row& row, const RunRecord& record, bool one_of_many) {
  const std::string axes = Sweep::axes(point_of(row, &record));
  if (one_of_many && !axes.empty()) return row.name + ", " + axes;
  if (!nodes_vary(row)) return row.name;
  return row.name + " (" + std::to_string(static_cast<int>(record.parameter("nodes").value_or(1))) +
         ")";
}

/// Reasons of what the table shows without a result, and of points that cannot be.
std::string notes_of(const ChooseConfig& choice, const Row& row,
                     const std::vector<const RunRecord*>& shown) {
  std::string notes;
  const bool none = shown.size() == 1 && !keeps_limits(choice, *shown.front());
  if (none) notes += "  " + row.name + ": " + no_choice(row) + "\n";
  for (std::size_t i = 0; i < row.records.size(); ++i) {
    const RunRecord& record = *row.records[i];
    if (record.status == RunStatus::kOk || (none && row.records.size() == 1)) continue;
    const bool listed = std::find(shown.begin(), shown.end(), &record) != shown.end();
    if (listed || cannot_be(record))
      notes += "  " + title(row, record, true) + ": " + record.reason + "\n";
  }
  return notes;
}

/// A result that breaks the limits of the table stands there as "none".
std::string cell(const SweepColumn& column, const RunRecord& record, bool fits) {
  if (!fits && record.status == RunStatus::kOk && !column.of_input)
    return column.title.title == "step" || column.title.title == "time" ? "none" : "-";
  return column.cell(record);
}

/// Whether some of the results shown were measured and others not, so that each says it.
bool differ_in_trust(const SweepCaseConfig& description, const std::vector<Row>& rows) {
  std::set<std::string> all;
  for (const Row& row : rows)
    for (const RunRecord* record : shown(description.choose, row))
      if (record->status == RunStatus::kOk) all.insert(rests_on(*record));
  return all.size() > 1;
}

void add_case(const Sweep& sweep, const SweepCaseConfig& description, const std::vector<Row>& rows,
              Answer& answer) {
  const LoadedExperiment first = sweep.load(*rows.front().points.front());
  const TableView view = first.experiment->table();
  std::vector<Table::Column> titles = {{"system"}};
  for (const SweepColumn& column : sweep_columns(description.table, view))
    titles.push_back(column.title);
  Gains gains(description.table);
  for (Table::Column& column : gains.titles()) titles.push_back(std::move(column));
  const bool trust = differ_in_trust(description, rows);
  if (trust) titles.push_back({"rests on"});
  Table table(std::move(titles));
  std::string notes;
  for (const Row& row : rows) {
    const auto records = shown(description.choose, row);
    for (const RunRecord* record : records) {
      const LoadedExperiment loaded = sweep.load(point_of(row, record));
      const bool fits = keeps_limits(description.choose, *record);
      std::vector<std::string> cells = {title(row, *record, records.size() > 1)};
      const TableView of_point = loaded.experiment->table();
      for (const SweepColumn& column : sweep_columns(description.table, of_point))
        cells.push_back(cell(column, *record, fits));
      for (std::string& gain : gains.next(*record, fits)) cells.push_back(std::move(gain));
      if (trust) cells.push_back(record->status == RunStatus::kOk ? rests_on(*record) : "-");
      table.add_row(std::move(cells));
    }
    notes += notes_of(description.choose, row, records);
  }
  answer.add(description.name + "\n");
  answer.add(std::move(table));
  answer.add(notes + "\n");
}

/// How many places of the plan each rule excludes, a line each.
std::string excluded_lines(const Sweep& sweep, const SweepResults& results) {
  std::string text;
  for (std::size_t i = 0; i < results.excluded.size(); ++i)
    for (std::size_t rule = 0; rule < results.excluded[i].size(); ++rule)
      if (const std::uint64_t count = results.excluded[i][rule])
        text += "excluded: " + std::to_string(count) + " by " + sweep.rules[i].where[rule].text +
                (results.excluded.size() > 1 ? " (" + sweep.config.cases[i].name + ")" : "") + "\n";
  return text;
}

nlohmann::ordered_json excluded_json(const Sweep& sweep, const SweepResults& results,
                                     std::size_t case_index) {
  nlohmann::ordered_json excluded = nlohmann::ordered_json::array();
  for (std::size_t rule = 0; rule < results.excluded[case_index].size(); ++rule)
    excluded.push_back({{"rule", sweep.rules[case_index].where[rule].text},
                        {"places", results.excluded[case_index][rule]}});
  return excluded;
}

/// An experiment of the sweep, to be asked for its table.
std::shared_ptr<const Experiment> any_experiment(const Sweep& sweep) {
  const PlanCursor first(sweep);
  return first.group() != nullptr ? first.group()->base().experiment : first.whole().experiment;
}

/// What to try next with a sweep of this kind.
std::string hints(const Sweep& sweep, const std::string& file, const std::string& store) {
  const TableView view = any_experiment(sweep)->table();
  const std::string& question = view.question;
  const auto asked = 2 + std::count(question.begin(), question.end(), ',');
  std::string text = "Every point is a row of " + store + ". Try:\n  sqlite3 -box " + store +
                     " \"SELECT name, " + question + " FROM v_runs ORDER BY " +
                     std::to_string(asked) + " DESC LIMIT 10\"\n";
  const config::Node& base = sweep.config.cases.front().base;
  if (base.is_scalar())
    text += "  build/release/orrery run " + config::relative_to(base.text(), file) + " --set '" +
            view.setting + "'\n";
  return text;
}

nlohmann::ordered_json to_json(const Sweep& sweep, const SweepResults& results,
                               const std::string& store) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < sweep.config.cases.size(); ++i) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Row& row : results.all_kept ? rows_of(sweep, results, i) : std::vector<Row>{}) {
      const RunRecord* chosen = choose(sweep.config.cases[i].choose, row.records);
      nlohmann::ordered_json points = nlohmann::ordered_json::array();
      for (const RunRecord* record : row.records) {
        points.push_back(to_json(*record));
        points.back().erase("components");  // no store has them
      }
      rows.push_back(
          {{"name", row.name},
           {"chosen", chosen != nullptr ? nlohmann::ordered_json(chosen->identity) : nullptr},
           {"points", std::move(points)}});
    }
    cases.push_back({{"name", sweep.config.cases[i].name},
                     {"excluded", excluded_json(sweep, results, i)},
                     {"rows", std::move(rows)}});
  }
  return {{"schema", "orrery.sweep/1"},
          {"sweep", sweep.config.name},
          {"store", store},
          {"points", results.points},
          {"failed", results.failed},
          {"rows_are_listed", results.all_kept},
          {"cases", std::move(cases)}};
}

}  // namespace

std::string counts_of(const SweepResults& results) {
  std::string text = std::to_string(results.points) +
                     " points: " + std::to_string(results.from_store) + " read from the store, " +
                     std::to_string(results.simulated) + " simulated in " +
                     number("%.1f s", results.seconds);
  if (results.impossible > 0) text += ", " + std::to_string(results.impossible) + " that cannot be";
  if (results.failed > 0) text += ", " + std::to_string(results.failed) + " FAILED";
  if (!results.stopped.empty()) text += "; stopped: " + results.stopped;
  return text;
}

Answer sweep_report(const Sweep& sweep, const SweepResults& results, const SweepFiles& files) {
  Answer answer;
  for (std::size_t i = 0; results.all_kept && i < sweep.config.cases.size(); ++i) {
    const std::vector<Row> rows = rows_of(sweep, results, i);
    if (!rows.empty()) add_case(sweep, sweep.config.cases[i], rows, answer);
  }
  const std::string remark = any_experiment(sweep)->table().remark;
  answer.add(
      counts_of(results) + "\n" + excluded_lines(sweep, results) + remark +
      (remark.empty() ? "" : "\n") +
      "p10 to p90: what the calibrations of kernels and collectives leave open; on priors, how "
      "far published figures of such devices lie apart.\n");
  for (const PointResult& result : results.kept) {
    if (result.record.status == RunStatus::kFailed)
      answer.add("failed: " + result.record.name + ": " + result.record.reason + "\n");
  }
  answer.add(hints(sweep, files.sweep, files.store));
  return answer;
}

Answer sweep_points(const Sweep& sweep, const SweepResults& results, const SweepFiles& files) {
  return {.parts = {}, .json = to_json(sweep, results, files.store)};
}

}  // namespace orrery
