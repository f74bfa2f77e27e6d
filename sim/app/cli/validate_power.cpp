// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/app/cli/error_columns.h"
#include "sim/app/cli/prediction_rows.h"
#include "sim/app/cli/published_table.h"
#include "sim/app/questions/base/question.h"
#include "validation/calibration/error_json.h"
#include "validation/checks/power_tables.h"
#include "validation/checks/published_comparison.h"

namespace orrery {
namespace {

bool is_yaml(const std::string& file) { return std::filesystem::path(file).extension() == ".yaml"; }

const std::vector<ErrorFigure> kFigures = {ErrorFigure::kCount, ErrorFigure::kMedian,
                                           ErrorFigure::kP90, ErrorFigure::kBias};

/// Figures of the readings that kernels of such power can give.
const std::vector<ErrorFigure> kOfReadings = {ErrorFigure::kMedian, ErrorFigure::kP90};

void append(KernelPowerRows& to, const KernelPowerRows& rows) {
  to.steady.insert(to.steady.end(), rows.steady.begin(), rows.steady.end());
  to.readings.insert(to.readings.end(), rows.readings.begin(), rows.readings.end());
}

/// The rows of all groups together.
KernelPowerGroup together(const KernelPowerReport& report) {
  KernelPowerGroup all;
  for (const auto& [key, group] : report.groups) {
    append(all.fitted, group.fitted);
    append(all.held_out, group.held_out);
  }
  return all;
}

nlohmann::ordered_json rows_json(const KernelPowerRows& rows) {
  nlohmann::ordered_json json = to_json(summarise(rows.steady));
  json["readings"] = to_json(summarise(rows.readings));
  return json;
}

void add_kernels(const KernelPowerReport& report, Answer& answer) {
  ToldRows rows{ErrorColumns({"kernels", "system", "framework", "class"})
                    .add(kFigures)
                    .add(kOfReadings, "readings")
                    .add(kFigures, "held-out")
                    .add(kOfReadings, "readings")
                    .table()};
  const auto cells_of = [&](std::vector<std::string> cells, const KernelPowerGroup& group) {
    for (const KernelPowerRows* of : {&group.fitted, &group.held_out}) {
      add_errors(cells, summarise(of->steady), kFigures);
      add_errors(cells, summarise(of->readings), kOfReadings);
    }
    return cells;
  };
  for (const auto& [key, group] : report.groups)
    rows.add(cells_of({key[0], key[1], key[2].empty() ? "-" : key[2], key[3]}, group),
             {{"table", key[0]},
              {"system", key[1]},
              {"framework", key[2]},
              {"class", key[3]},
              {"fitted", rows_json(group.fitted)},
              {"held_out", rows_json(group.held_out)}});
  const KernelPowerGroup all = together(report);
  rows.table.add_row(cells_of({"all", "", "", ""}, all));
  answer.add(std::move(rows.table));
  answer.add(
      "readings: to the nearest value that NVML can give of the predicted power; its means of a "
      "second hold from half of the rise over the floor (after a pause) to all of it\n"
      "short runs, whose readings do not tell the power of the kernel: " +
      std::to_string(report.short_runs) + " rows\n" + left_out_lines(report.left_out));
  answer.json["kernels"] = {
      {"all", {{"fitted", rows_json(all.fitted)}, {"held_out", rows_json(all.held_out)}}},
      {"entries", std::move(rows.json)},
      {"short_runs", report.short_runs},
      {"left_out", report.left_out}};
}

/// Rows of one file of published figures that tell one metric.
struct PublishedPower {
  std::string file, metric;
  bool time_off = false;  ///< the rows whose time per token is more than 15 % off
  std::vector<Comparison> rows;
  std::size_t without = 0;  ///< rows without a prediction
};

/// A row of watts may have one of time beside it: "ID W" and "ID ms".
std::string subject_of(const std::string& id) { return id.substr(0, id.rfind(' ')); }

/// Figures of power of one file; those whose time is off stand apart.
std::vector<PublishedPower> published_power(const std::string& file,
                                            const std::vector<PublishedComparison>& comparisons) {
  constexpr double kTimeOff = 0.15;
  std::map<std::string, double> time_errors;
  for (const PublishedComparison& c : comparisons)
    if (c.reason.empty() && c.row.metric == "median_itl_ms")
      time_errors[subject_of(c.row.id)] = c.error;
  std::map<std::pair<std::string, bool>, PublishedPower> groups;
  for (const PublishedComparison& c : comparisons) {
    if (c.row.metric == "median_itl_ms") continue;
    const auto time = time_errors.find(subject_of(c.row.id));
    const bool off = time != time_errors.end() && std::abs(time->second) > kTimeOff;
    PublishedPower& group = groups[{c.row.metric, off}];
    if (c.reason.empty()) {
      group.rows.push_back({c.predicted, c.measured});
    } else {
      ++group.without;
    }
  }
  std::vector<PublishedPower> all;
  for (auto& [key, group] : groups) {
    group.file = file;
    std::tie(group.metric, group.time_off) = key;
    all.push_back(std::move(group));
  }
  return all;
}

void add_published(const std::vector<PublishedPower>& groups, Answer& answer) {
  ToldRows rows{ErrorColumns({"rows", "metric"})
                    .add(kFigures)
                    .add({"not predicted", Table::Align::kRight})
                    .table()};
  for (const PublishedPower& group : groups) {
    const ErrorSummary errors = summarise(group.rows);
    std::vector<std::string> cells = {
        group.file, group.metric + (group.time_off ? ", time per token more than 15 % off" : "")};
    add_errors(cells, errors, kFigures);
    cells.push_back(std::to_string(group.without));
    nlohmann::ordered_json entry = {
        {"rows", group.file}, {"metric", group.metric}, {"time_off", group.time_off}};
    entry.update(to_json(errors));
    entry["not_predicted"] = group.without;
    rows.add(std::move(cells), std::move(entry));
  }
  if (!groups.empty()) answer.add(std::move(rows.table));
  answer.json["published"] = std::move(rows.json);
}

struct PowerQuestion {
  std::vector<std::string> files;
  std::string rows;  ///< path for a CSV of kernels and predictions, or empty

  void take(Options& options) {
    options.optional_positionals(
        "FILE", files,
        "tables of kernels with power_w (CSV, plain or gzip) and YAML files of published rows; by "
        "default the files of validation/power");
    options.option("--rows", rows, "write the rows of kernels with predictions to this CSV");
  }

  Answer answer() const {
    KernelPowerReport kernels;
    PredictionRows rows_file(rows, "predicted_us,predicted_w");
    std::vector<PublishedPower> published;
    bool tables = false;
    for (const std::string& file : files.empty() ? shipped_rows("power") : files) {
      if (is_yaml(file)) {
        for (PublishedPower& group : published_power(std::filesystem::path(file).stem().string(),
                                                     compare_with_progress({file})))
          published.push_back(std::move(group));
        continue;
      }
      tables = true;
      const OperatorTable table = read_operator_table(file);
      rows_file.header(table.header);
      add_power_table(file, table, kernels, [&](const std::string& text, const KernelPower& row) {
        rows_file.row(text, {predicted_text(row.predicted_us), predicted_text(row.predicted_w)});
      });
    }
    rows_file.commit();
    Answer answer;
    answer.json = {{"schema", "orrery.power/1"}};
    if (tables) add_kernels(kernels, answer);
    add_published(published, answer);
    return answer;
  }
};

const RegisterQuestion<PowerQuestion> registered_power(
    "validate power",
    "compare predicted power of kernels, served and trained runs and servers with measured values");

}  // namespace
}  // namespace orrery
