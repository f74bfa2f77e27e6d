// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/error_columns.h"
#include "sim/app/cli/prediction_rows.h"
#include "sim/app/cli/progress.h"
#include "sim/app/cli/validate_runs.h"
#include "sim/app/cli/verb.h"
#include "validation/calibration/errors.h"
#include "validation/checks/serving_order.h"
#include "validation/checks/serving_targets.h"
#include "validation/checks/serving_validation.h"

namespace orrery {
namespace {

struct ServingArguments {
  std::vector<std::string> files;
  std::string rows;    ///< file for the rows with their predictions; empty: none
  std::string models;  ///< folder of Hugging Face configurations; empty: none
  std::string tables;  ///< folder of operator tables of the engine; empty: none
  bool json = false;

  void take(Options& options);
  ExitCode run() const;
};

/// Errors of a metric by group.
struct ServingErrors {
  std::vector<Comparison> ttft, tpot;
};

/// model, system, backend
using GroupKey = std::tuple<std::string, std::string, std::string>;
using Groups = std::map<GroupKey, ServingErrors>;

void add(ServingErrors& errors, const ServingComparison& c) {
  constexpr double kUs = 1e3;  // us of a ms
  errors.tpot.push_back({c.tpot_ms * kUs, c.row.tpot_ms * kUs});
  if (c.row.tells_ttft()) errors.ttft.push_back({c.ttft_ms * kUs, c.row.ttft_ms * kUs});
}

Groups grouped(const std::vector<ServingComparison>& comparisons) {
  Groups groups;
  for (const ServingComparison& c : comparisons) {
    if (!c.reason.empty()) continue;
    add(groups[{c.row.model, c.row.system, c.row.backend}], c);
    add(groups[{"~all", "", ""}], c);
  }
  return groups;
}

std::map<std::string, int> left_out(const std::vector<ServingComparison>& comparisons) {
  std::map<std::string, int> reasons;
  for (const ServingComparison& c : comparisons)
    if (!c.reason.empty()) ++reasons[c.row.model + ": " + c.reason];
  return reasons;
}

void print(const std::vector<ServingComparison>& comparisons) {
  using enum ErrorFigure;
  const std::vector<ErrorFigure> of_tpot = {kCount, kMape, kMedian, kP90, kBias};
  const std::vector<ErrorFigure> of_ttft = {kCount, kMape, kMedian, kBias};
  Table table = ErrorColumns({"model", "system", "backend"})
                    .add(of_tpot, "TPOT")
                    .add(of_ttft, "TTFT")
                    .table();
  for (const auto& [key, errors] : grouped(comparisons)) {
    const auto& [model, system, backend] = key;
    std::vector<std::string> row = {model == "~all" ? "all" : model, system, backend};
    add_errors(row, summarise(errors.tpot), of_tpot);
    add_errors(row, summarise(errors.ttft), of_ttft);
    table.add_row(std::move(row));
  }
  print(table, std::cout);
  for (const auto& [reason, count] : left_out(comparisons))
    std::cout << "left out: " << count << " rows, " << reason << "\n";
}

ServingOrder order_of(const std::vector<ServingComparison>& comparisons) {
  ServingOrder order;
  for (const ServingComparison& c : comparisons) order.add(c);
  return order;
}

ServingOrder::Count total(const std::map<std::string, ServingOrder::Count>& pairs) {
  ServingOrder::Count all;
  for (const auto& [pair, count] : pairs) {
    all.right += count.right;
    all.all += count.all;
  }
  return all;
}

void print(const ServingOrder& order) {
  const auto pairs = order.pairs();
  const ServingOrder::Count all = total(pairs);
  if (all.all == 0) return;
  std::string each;
  for (const auto& [pair, count] : pairs)
    each += (each.empty() ? "" : "; ") + pair + ": " + std::to_string(count.right) + " of " +
            std::to_string(count.all);
  std::cout << "order of systems at equal tokens/s of a user: right in " << all.right << " of "
            << all.all << " pairs (" << format_percent(all.share()) << "): " << each << "\n";
}

/// TTFT by its median error.
void print(const std::vector<ServingTarget>& targets) {
  using enum ErrorFigure;
  const std::vector<ErrorFigure> of_tpot = {kCount, kMape, kP90, kBias};
  const std::vector<ErrorFigure> of_ttft = {kCount, kMedian, kBias};
  Table table = ErrorColumns({"judged together"}).add(of_tpot, "TPOT").add(of_ttft, "TTFT").table();
  for (const ServingTarget& t : targets) {
    std::vector<std::string> row = {t.name};
    add_errors(row, t.tpot, of_tpot);
    add_errors(row, t.ttft, of_ttft);
    table.add_row(std::move(row));
  }
  print(table, std::cout);
}

nlohmann::ordered_json order_json(const ServingOrder& order) {
  nlohmann::ordered_json pairs = nlohmann::ordered_json::array();
  for (const auto& [pair, count] : order.pairs())
    pairs.push_back({{"systems", pair}, {"right", count.right}, {"n", count.all}});
  return pairs;
}

nlohmann::ordered_json order_total_json(const ServingOrder& order) {
  const ServingOrder::Count all = total(order.pairs());
  return {{"right", all.right}, {"n", all.all}, {"share", all.share()}};
}

/// Tokens/s of an accelerator by the fronts; null where one does not reach the tokens/s of a user.
nlohmann::ordered_json judged_json(const ServingOrder& order) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json judged = nlohmann::ordered_json::array();
  for (const JudgedOrder& o : order.judged())
    judged.push_back({{"runs", o.runs},
                      {"systems", {o.first, o.second}},
                      {"tokens_per_s_of_a_user", o.user},
                      {"measured", {o.measured_first, o.measured_second}},
                      {"predicted", {or_null(o.predicted_first), or_null(o.predicted_second)}},
                      {"right", o.right()}});
  return judged;
}

nlohmann::ordered_json summary_json(const ErrorSummary& e) {
  return {{"n", e.count}, {"mape", e.mape}, {"median", e.median},
          {"p90", e.p90}, {"bias", e.bias}, {"worst", e.worst}};
}

nlohmann::ordered_json report(const std::vector<ServingComparison>& comparisons) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const auto& [key, errors] : grouped(comparisons)) {
    const auto& [model, system, backend] = key;
    entries.push_back({{"model", model == "~all" ? "all" : model},
                       {"system", system},
                       {"backend", backend},
                       {"tpot", summary_json(summarise(errors.tpot))},
                       {"ttft", summary_json(summarise(errors.ttft))}});
  }
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& [reason, count] : left_out(comparisons))
    out.push_back({{"reason", reason}, {"rows", count}});
  nlohmann::ordered_json targets = nlohmann::ordered_json::array();
  for (const ServingTarget& target : serving_targets(comparisons))
    targets.push_back({{"name", target.name},
                       {"tpot", summary_json(target.tpot)},
                       {"ttft", summary_json(target.ttft)}});
  const ServingOrder order = order_of(comparisons);
  return {{"schema", "orrery.validation/1"},
          {"entries", std::move(entries)},
          {"left_out", out},
          {"targets", std::move(targets)},
          {"order", order_json(order)},
          {"order_total", order_total_json(order)},
          {"order_judged", judged_json(order)}};
}

void write_rows(const std::string& path, const std::string& columns,
                const std::vector<ServingComparison>& comparisons) {
  PredictionRows file(path, "predicted_ttft_ms,predicted_tpot_ms");
  file.header(columns);
  for (const ServingComparison& c : comparisons) {
    const bool predicted = c.reason.empty();
    file.row(c.row.text, {predicted ? predicted_text(c.ttft_ms) : "",
                          predicted ? predicted_text(c.tpot_ms) : ""});
  }
  file.commit();
}

}  // namespace

void ServingArguments::take(Options& options) {
  options.positionals("FILE", files,
                      "tables of measured runs (CSV), or folders of runs with requests.jsonl");
  options.option("--rows", rows, "write the rows with their predictions to this file");
  options.option("--models", models,
                 "folder with config.json files (org--name.json) of models that the library lacks");
  options.option(
      "--tables", tables,
      "folder of the engine's operator tables, which price the iterations of run folders");
  options.json(json);
}

ExitCode ServingArguments::run() const {
  ServingValidation validation(models);
  if (!files.empty() && std::filesystem::is_directory(files.front()))
    return validate_runs(files, tables, validation, json);
  std::vector<ServingComparison> comparisons;
  std::string columns;
  for (const std::string& file : files) {
    const ServingRows table = read_serving_rows(file);
    columns = table.columns;
    validation.learn_protocols(table.rows);
    Progress progress("serving", table.rows.size());
    for (const ServingRow& row : table.rows) {
      comparisons.push_back(validation.compare(row));
      progress.step(row.id);
    }
  }
  write_rows(rows, columns, comparisons);
  if (json) {
    std::cout << report(comparisons).dump(2) << "\n";
  } else {
    print(comparisons);
    print(serving_targets(comparisons));
    print(order_of(comparisons));
  }
  return ExitCode::kOk;
}

namespace {

const RegisterVerb<ServingArguments> registered_serving("validate serving",
                                                        "measured runs of serving engines");

}  // namespace

}  // namespace orrery
