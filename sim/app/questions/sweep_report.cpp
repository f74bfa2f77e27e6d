// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/sweep_report.h"

#include <fmt/core.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "sim/app/experiments/keys/table_columns.h"
#include "sim/app/questions/points/shown_points.h"
#include "sim/app/questions/sweep_rows.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/config/library.h"
#include "sim/results/metric_table.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// A parameter as it is written, a metric with its unit and interval; "-" without.
std::string text_of(const RunRecord& record, const std::string& name) {
  const Metric* metric = record.find(name);
  if (metric == nullptr) {
    const std::string named = name + "." + name.substr(name.rfind('.') + 1);  // of model: its name
    for (const Parameter& parameter : record.parameters())
      if (parameter.path == name || parameter.path == named) return parameter.text;
    return "-";
  }
  const std::string unit = find_metric(name)->unit;
  const char* shown = unit == "1" || unit.starts_with("1/") ? "" : unit.c_str();
  std::string text = format_si(metric->value, shown);
  if (metric->interval)
    text += fmt::format(" [{}, {}]", format_si(metric->interval->first, shown),
                        format_si(metric->interval->second, shown));
  return text;
}

std::optional<double> number_of(const RunRecord& record, const std::string& name) {
  const std::optional<NamedValue> value = value_of(record, name);
  return value ? std::optional(value->value) : std::nullopt;
}

/// The columns of a case: those that it asks for, in the place of the usual ones. A metric stands
/// with its interval where it has one.
std::vector<SweepColumn> sweep_columns(const SweepTableConfig& asked, const TableView& usual) {
  if (asked.columns.empty()) return usual.columns;
  std::vector<SweepColumn> columns;
  columns.reserve(asked.columns.size());
  for (const std::string& name : asked.columns)
    columns.push_back({{name, Table::Align::kRight},
                       [name](const RunRecord& record) { return text_of(record, name); },
                       find_metric(name) == nullptr});
  return columns;
}

/// The factor by which each row of a table is better than the first and the one above; factors of
/// successive rows multiply to that over the first. Rows without a result are passed over.
class Gains {
 public:
  explicit Gains(const SweepTableConfig& asked) : sought_(asked.gain) {}

  /// Titles of the two columns; none where no gain is asked for.
  std::vector<Table::Column> titles() const {
    if (!sought_) return {};
    return {{"over the first", Table::Align::kRight}, {"over the one above", Table::Align::kRight}};
  }
  /// The cells of the next row. @param fits whether the row has a result
  std::vector<std::string> next(const RunRecord& record, bool fits) {
    if (!sought_) return {};
    const std::optional<double> value = fits ? number_of(record, sought_->name()) : std::nullopt;
    if (!value) return {"-", "-"};
    const auto better = [&](double than) {
      return fmt::format("{:.3g}x", sought_->minimize.empty() ? *value / than : than / *value);
    };
    if (!first_) first_ = above_ = value;
    std::vector<std::string> cells = {better(*first_), better(*above_)};
    above_ = value;
    return cells;
  }

 private:
  std::optional<ObjectiveConfig> sought_;
  std::optional<double> first_, above_;
};

/// A result that breaks the limits of the table stands there as "none".
std::string cell(const SweepColumn& column, const RunRecord& record, bool fits) {
  if (!fits && record.status == RunStatus::kOk && !column.of_input)
    return column.title.title == "step" || column.title.title == "time" ? "none" : "-";
  return column.cell(record);
}

/// Whether some of the results shown were measured and others not, so that each says it.
bool differ_in_trust(const SweepCaseConfig& description, const std::vector<SweepTableRow>& rows) {
  std::set<std::string> all;
  for (const SweepTableRow& row : rows)
    for (const RunRecord* record : shown_records(description.choose, row))
      if (record->status == RunStatus::kOk) all.insert(rests_on(*record));
  return all.size() > 1;
}

/// The table of one case.
class CaseTable {
 public:
  /// @param rows at least one with a point
  CaseTable(const Sweep& sweep, const SweepCaseConfig& described,
            const std::vector<SweepTableRow>& rows)
      : sweep_(sweep),
        described_(described),
        chosen_(paths_without_column(rows)),
        trust_(differ_in_trust(described, rows)),
        gains_(described.table),
        table_(titles()) {
    for (const SweepTableRow& row : rows) add(row);
  }

  Table table() && { return std::move(table_); }
  std::string notes() const { return excluded_ + reasons_.lines("  "); }

 private:
  /// Paths that `choose` picked a value of and no other column says.
  std::vector<std::string> paths_without_column(const std::vector<SweepTableRow>& rows) {
    const auto any =
        std::ranges::find_if(rows, [](const SweepTableRow& row) { return !row.points.empty(); });
    const LoadedExperiment first = sweep_.load(*any->points.front());
    std::set<std::string> told(described_.table.columns.begin(), described_.table.columns.end());
    for (const SweepColumn& column : sweep_columns(described_.table, first.experiment->table())) {
      columns_.push_back(column.title);
      told.insert(column.tells.begin(), column.tells.end());
    }
    std::vector<std::string> paths = chosen_paths(described_, rows);
    std::erase_if(paths, [&](const std::string& path) { return told.count(path) > 0; });
    return paths;
  }

  std::vector<Table::Column> titles() const {
    std::vector<Table::Column> titles = {{"system"}};
    for (const std::string& path : chosen_)
      titles.push_back({column_title(path, chosen_), Table::Align::kRight});
    titles.insert(titles.end(), columns_.begin(), columns_.end());
    for (Table::Column& column : gains_.titles()) titles.push_back(std::move(column));
    if (trust_) titles.push_back({"rests on"});
    return titles;
  }

  void add(const SweepTableRow& row) {
    if (row.records.empty()) {
      std::vector<std::string> cells(titles().size(), "-");
      cells.front() = row.name;
      table_.add_row(std::move(cells));
      excluded_ += fmt::format("  {}: all points are excluded: {}\n", row.name, row.excluded);
      return;
    }
    const auto records = shown_records(described_.choose, row);
    for (const RunRecord* record : records) {
      const LoadedExperiment loaded = sweep_.load(point_of(row, *record));
      const bool fits = keeps_limits(described_.choose, *record);
      std::vector<std::string> cells = {title_of(row, *record, records.size() > 1)};
      for (const std::string& path : chosen_) cells.push_back(value_at(row, *record, path));
      const TableView view = loaded.experiment->table();
      for (const SweepColumn& column : sweep_columns(described_.table, view))
        cells.push_back(cell(column, *record, fits));
      for (std::string& gain : gains_.next(*record, fits)) cells.push_back(std::move(gain));
      if (trust_) cells.push_back(record->status == RunStatus::kOk ? rests_on(*record) : "-");
      table_.add_row(std::move(cells));
    }
    add_reasons(described_.choose, row, reasons_);
  }

  const Sweep& sweep_;
  const SweepCaseConfig& described_;
  std::vector<Table::Column> columns_;  ///< those that the case asks for, or the usual ones
  std::vector<std::string> chosen_;
  bool trust_;
  Gains gains_;
  Table table_;
  Reasons reasons_;
  std::string excluded_;
};

void add_case(const Sweep& sweep, const SweepCaseConfig& description,
              const std::vector<SweepTableRow>& rows, Answer& answer) {
  const bool any =
      std::ranges::any_of(rows, [](const SweepTableRow& row) { return !row.points.empty(); });
  if (!any) return;
  CaseTable table(sweep, description, rows);
  const std::string notes = table.notes();
  answer.add(description.name + "\n");
  answer.add(std::move(table).table());
  answer.add(notes + "\n");
}

/// How to get the best of each row of a case whose table is not printed.
std::string instead_of_table(const SweepCaseConfig& described, const std::string& store) {
  const ChooseConfig& choice = described.choose;
  if (!choice.optimises()) return "orrery export " + store + " --csv";
  std::string text = "orrery best " + store +
                     (choice.maximize.empty() ? " --minimize " + choice.minimize
                                              : " --maximize " + choice.maximize);
  if (choice.at == ChooseAt::kP90) text += " --at p90";
  std::string where;
  for (const bool upper : {true, false})
    for (const auto& [name, limit] : upper ? choice.at_most : choice.at_least)
      where += fmt::format("{}{} {} {}", where.empty() ? "" : " and ", name,
                           upper ? "<=" : ">=", limit.text());
  const auto& rows = described.table.rows;
  text += " --by " + (rows.empty() ? "name" : rows.front());
  return where.empty() ? text : fmt::format("{} --where \"{}\"", text, where);
}

/// A line for each case of a sweep that is too large for tables.
std::string lines_instead_of_tables(const Sweep& sweep, const std::string& store) {
  std::string text;
  for (const SweepCaseConfig& described : sweep.config.cases)
    text += fmt::format("{}: a table shows at most {} places, and the plan has {}; try: {}\n",
                        described.name, print_grouped(SweepResults::kMostKept),
                        print_grouped(static_cast<double>(sweep.places())),
                        instead_of_table(described, store));
  return text;
}

/// How many places of the plan each rule excludes, a line each.
std::string excluded_lines(const Sweep& sweep, const SweepResults& results) {
  std::string text;
  const auto& cases = sweep.config.cases;
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (const std::string& rule : excluded_by(sweep, results, variants_of(sweep, i)))
      text += fmt::format("excluded: {}{}\n", rule,
                          cases.size() > 1 ? fmt::format(" ({})", cases[i].name) : "");
  return text;
}

nlohmann::ordered_json excluded_json(const Sweep& sweep, const SweepResults& results,
                                     std::size_t case_index) {
  nlohmann::ordered_json excluded = nlohmann::ordered_json::array();
  const auto& rules = sweep.rules[case_index].where;
  for (std::size_t rule = 0; rule < rules.size(); ++rule)
    excluded.push_back(
        {{"rule", rules[rule].text},
         {"places", places_excluded(results, variants_of(sweep, case_index), rule)}});
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
  const auto asked = 2 + std::ranges::count(question, ',');
  std::string text = fmt::format(
      "Every point is a row of {0}. Try:\n  sqlite3 -box {0} \"SELECT name, {1} FROM v_runs ORDER "
      "BY "
      "{2} DESC LIMIT 10\"\n",
      store, question, asked);
  const config::Node& base = sweep.config.cases.front().base;
  if (base.is_scalar())
    text += fmt::format("  orrery run {} --set '{}'\n", config::relative_to(base.text(), file),
                        view.setting);
  return text;
}

nlohmann::ordered_json to_json(const Sweep& sweep, const SweepResults& results,
                               const std::string& store) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < sweep.config.cases.size(); ++i) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    const auto table =
        results.all_kept ? table_rows(sweep, results, i) : std::vector<SweepTableRow>{};
    for (const SweepTableRow& row : table) {
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
          {"infeasible", results.infeasible},
          {"rows_are_listed", results.all_kept},
          {"cases", std::move(cases)}};
}

}  // namespace

std::string counts_of(const SweepResults& results) {
  std::string text =
      fmt::format("{} points: {} read from the store, {} simulated in {:.1f} s", results.points,
                  results.from_store, results.simulated, results.seconds);
  if (results.impossible > 0) text += fmt::format(", {} that cannot be", results.impossible);
  if (results.infeasible > 0) text += fmt::format(", {} infeasible", results.infeasible);
  if (results.failed > 0) text += fmt::format(", {} FAILED", results.failed);
  if (!results.stopped.empty()) text += "; stopped: " + results.stopped;
  return text;
}

Answer sweep_report(const Sweep& sweep, const SweepResults& results, const SweepFiles& files) {
  Answer answer;
  for (std::size_t i = 0; results.all_kept && i < sweep.config.cases.size(); ++i) {
    const std::vector<SweepTableRow> rows = table_rows(sweep, results, i);
    if (!rows.empty()) add_case(sweep, sweep.config.cases[i], rows, answer);
  }
  if (!results.all_kept) answer.add(lines_instead_of_tables(sweep, files.store) + "\n");
  const std::string remark = any_experiment(sweep)->table().remark;
  answer.add(fmt::format(
      "{}\n{}{}{}p10 to p90: what the calibrations of kernels and collectives leave open; on "
      "priors, "
      "how far published figures of such devices lie apart.\n",
      counts_of(results), excluded_lines(sweep, results), remark, remark.empty() ? "" : "\n"));
  Reasons failures;
  for (const PointResult& result : results.kept) {
    const std::string& name = result.record.name;
    if (result.record.status == RunStatus::kFailed) failures.add(name, name, result.record.reason);
  }
  answer.add(failures.lines("failed: "));
  answer.add(hints(sweep, files.sweep, files.store));
  return answer;
}

Answer sweep_points(const Sweep& sweep, const SweepResults& results, const SweepFiles& files) {
  return {.parts = {}, .json = to_json(sweep, results, files.store)};
}

}  // namespace orrery
