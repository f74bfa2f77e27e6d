// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/app/cli/error_columns.h"
#include "sim/app/cli/prediction_rows.h"
#include "sim/app/cli/progress.h"
#include "sim/app/cli/validate_runs.h"
#include "sim/app/questions/base/question.h"
#include "validation/calibration/errors.h"
#include "validation/checks/serving_order.h"
#include "validation/checks/serving_validation.h"

namespace orrery {
namespace {

/// Figures of the errors of both times that a table shows.
struct FigureSets {
  std::vector<ErrorFigure> tpot, ttft;

  ErrorColumns add_to(ErrorColumns columns) const {
    return columns.add(tpot, "TPOT").add(ttft, "TTFT");
  }
};

/// Rows with a prediction by model, system, backend; all of them under "~all".
std::map<std::array<std::string, 3>, std::vector<const ServingComparison*>> grouped(
    const std::vector<ServingComparison>& comparisons) {
  std::map<std::array<std::string, 3>, std::vector<const ServingComparison*>> groups;
  for (const ServingComparison& c : comparisons) {
    if (!c.reason.empty()) continue;
    groups[{c.row.model, c.row.system, c.row.backend}].push_back(&c);
    groups[{"~all", "", ""}].push_back(&c);
  }
  return groups;
}

std::map<std::string, std::size_t> left_out(const std::vector<ServingComparison>& comparisons) {
  std::map<std::string, std::size_t> reasons;
  for (const ServingComparison& c : comparisons)
    if (!c.reason.empty()) ++reasons[c.row.model + ": " + c.reason];
  return reasons;
}

nlohmann::ordered_json summary_json(const ErrorSummary& e) {
  return {{"n", e.count}, {"mape", e.mape}, {"median", e.median},
          {"p90", e.p90}, {"bias", e.bias}, {"worst", e.worst}};
}

/// Adds the errors of both times to the cells and the object of a row.
void add_row(std::vector<std::string> cells, nlohmann::ordered_json object,
             const ServingTarget& errors, const FigureSets& figures, ToldRows& rows) {
  add_errors(cells, errors.tpot, figures.tpot);
  add_errors(cells, errors.ttft, figures.ttft);
  object["tpot"] = summary_json(errors.tpot);
  object["ttft"] = summary_json(errors.ttft);
  rows.add(std::move(cells), std::move(object));
}

ToldRows by_group(const std::vector<ServingComparison>& comparisons) {
  using enum ErrorFigure;
  const FigureSets figures = {{kCount, kMape, kMedian, kP90, kBias},
                              {kCount, kMape, kMedian, kBias}};
  ToldRows rows{figures.add_to(ErrorColumns({"model", "system", "backend"})).table()};
  for (const auto& [key, of] : grouped(comparisons)) {
    const auto& [group, system, backend] = key;
    const std::string model = group == "~all" ? "all" : group;
    add_row({model, system, backend}, {{"model", model}, {"system", system}, {"backend", backend}},
            serving_target("", of), figures, rows);
  }
  return rows;
}

/// TTFT by its median error.
ToldRows by_target(const std::vector<ServingComparison>& comparisons) {
  using enum ErrorFigure;
  const FigureSets figures = {{kCount, kMape, kP90, kBias}, {kCount, kMedian, kBias}};
  ToldRows rows{figures.add_to(ErrorColumns({"judged together"})).table()};
  for (const ServingTarget& t : serving_targets(comparisons))
    add_row({t.name}, {{"name", t.name}}, t, figures, rows);
  return rows;
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

std::string line_of(const ServingOrder& order) {
  const auto pairs = order.pairs();
  const ServingOrder::Count all = total(pairs);
  if (all.all == 0) return {};
  std::string each;
  for (const auto& [pair, count] : pairs)
    each += (each.empty() ? "" : "; ") + pair + ": " + std::to_string(count.right) + " of " +
            std::to_string(count.all);
  return "order of systems at equal tokens/s of a user: right in " + std::to_string(all.right) +
         " of " + std::to_string(all.all) + " pairs (" + format_percent(all.share()) +
         "): " + each + "\n";
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

Answer answer_of(const std::vector<ServingComparison>& comparisons) {
  ToldRows groups = by_group(comparisons), targets = by_target(comparisons);
  const ServingOrder order = order_of(comparisons);
  const std::map<std::string, std::size_t> reasons = left_out(comparisons);
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& [reason, count] : reasons) out.push_back({{"reason", reason}, {"rows", count}});
  return {.parts = {std::move(groups.table), left_out_lines(reasons), std::move(targets.table),
                    line_of(order)},
          .json = {{"schema", "orrery.validation/1"},
                   {"entries", std::move(groups.json)},
                   {"left_out", std::move(out)},
                   {"targets", std::move(targets.json)},
                   {"order", order_json(order)},
                   {"order_total", order_total_json(order)},
                   {"order_judged", judged_json(order)}}};
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

struct ServingQuestion {
  std::vector<std::string> files;
  std::string rows;    ///< path for a CSV of rows and predictions, or empty
  std::string models;  ///< folder of Hugging Face configurations, or empty
  std::string tables;  ///< folder of the engine's operator tables, or empty

  void take(Options& options) {
    options.positionals("FILE", files,
                        "tables of measured runs (CSV), or folders of runs with requests.jsonl");
    options.option("--rows", rows, "write the rows with their predictions to this file");
    options.option(
        "--models", models,
        "folder with config.json files (org--name.json) of models that the library lacks");
    options.option(
        "--tables", tables,
        "folder of the engine's operator tables, which price the iterations of run folders");
  }

  Answer answer() const {
    ServingValidation validation(models);
    if (!files.empty() && std::filesystem::is_directory(files.front()))
      return validate_runs(files, tables, validation);
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
    return answer_of(comparisons);
  }
};

const RegisterQuestion<ServingQuestion> registered_serving("validate serving",
                                                           "measured runs of serving engines");

}  // namespace
}  // namespace orrery
