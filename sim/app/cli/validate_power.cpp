// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/cli/validate.h"
#include "sim/app/questions/base/verb.h"
#include "sim/results/json_table.h"
#include "validation/calibration/error_json.h"
#include "validation/checks/power_tables.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

bool is_yaml(const std::string& file) { return std::filesystem::path(file).extension() == ".yaml"; }

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

ordered_json rows_json(const KernelPowerRows& rows) {
  ordered_json json = to_json(summarise(rows.steady));
  json["readings"] = to_json(summarise(rows.readings));
  return json;
}

ordered_json group_json(const KernelPowerGroup& group) {
  return {{"fitted", rows_json(group.fitted)}, {"held_out", rows_json(group.held_out)}};
}

void add_kernels(const KernelPowerReport& report, Answer& answer) {
  ordered_json entries = ordered_json::array(), shown = ordered_json::array();
  for (const auto& [key, group] : report.groups) {
    ordered_json entry = {
        {"table", key[0]}, {"system", key[1]}, {"framework", key[2]}, {"class", key[3]}};
    entry.update(group_json(group));
    shown.push_back(entry);
    if (key[2].empty()) shown.back()["framework"] = "-";
    entries.push_back(std::move(entry));
  }
  const ordered_json all = group_json(together(report));
  shown.push_back({{"table", "all"}, {"system", ""}, {"framework", ""}, {"class", ""}});
  shown.back().update(all);
  answer.add(
      json_table(shown,
                 "kernels = table | system = system | framework = framework | class = class | "
                 "n = fitted.count count | median = fitted.median error | p90 = fitted.p90 error | "
                 "bias = fitted.bias error | readings median = fitted.readings.median error | "
                 "p90 = fitted.readings.p90 error | n = held_out.count count | "
                 "held-out median = held_out.median error | p90 = held_out.p90 error | "
                 "bias = held_out.bias error | readings median = held_out.readings.median error | "
                 "p90 = held_out.readings.p90 error"));
  answer.add(fmt::format(
      "readings: to the nearest value that NVML can give of the predicted power; its means of a "
      "second hold from half of the rise over the floor (after a pause) to all of it\n"
      "short runs, whose readings do not tell the power of the kernel: {} rows\n{}",
      report.short_runs, left_out_lines(report.left_out)));
  answer.json["kernels"] = {{"all", all},
                            {"entries", std::move(entries)},
                            {"short_runs", report.short_runs},
                            {"left_out", report.left_out}};
}

/// A row of watts may have one of time beside it: "ID W" and "ID ms".
std::string subject_of(const std::string& id) { return id.substr(0, id.rfind(' ')); }

/// Published rows that tell one metric.
struct PublishedPower {
  std::vector<Comparison> rows;
  std::size_t without = 0;  ///< rows without a prediction
};

/// Adds figures of power of one file; those whose time per token is more than 15 % off stand apart.
void add_published(const std::string& file, ordered_json& entries) {
  constexpr double kTimeOff = 0.15;
  const std::vector<PublishedComparison> comparisons = compare_with_progress({file});
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
  for (const auto& [key, group] : groups) {
    ordered_json& entry =
        entries.emplace_back(ordered_json{{"rows", std::filesystem::path(file).stem().string()},
                                          {"metric", key.first},
                                          {"time_off", key.second}});
    entry.update(to_json(summarise(group.rows)));
    entry["not_predicted"] = group.without;
  }
}

Table published_table(ordered_json entries) {
  for (ordered_json& entry : entries)
    if (entry["time_off"])
      entry["metric"] = entry["metric"].get<std::string>() + ", time per token more than 15 % off";
  return json_table(entries,
                    "rows = rows | metric = metric | n = count count | median = median error | "
                    "p90 = p90 error | bias = bias error | not predicted = not_predicted count");
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
    ordered_json published = ordered_json::array();
    bool tables = false;
    for (const std::string& file : files.empty() ? shipped_rows("power") : files) {
      if (is_yaml(file)) {
        add_published(file, published);
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
    if (!published.empty()) answer.add(published_table(published));
    answer.json["published"] = std::move(published);
    return answer;
  }
};

const RegisterQuestion<PowerQuestion> registered_power(
    "validate power",
    "compare predicted power of kernels, served and trained runs and servers with measured values");

}  // namespace
}  // namespace orrery
