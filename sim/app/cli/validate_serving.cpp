// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/cli/progress.h"
#include "sim/app/cli/validate.h"
#include "sim/app/questions/base/verb.h"
#include "sim/results/json_table.h"
#include "sim/units/comma_separated.h"
#include "validation/checks/run_validation.h"
#include "validation/checks/served_rows.h"
#include "validation/checks/serving_order.h"
#include "validation/checks/serving_validation.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

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

ordered_json summary_json(const ErrorSummary& e) {
  return {{"n", e.count}, {"mape", e.mape}, {"median", e.median},
          {"p90", e.p90}, {"bias", e.bias}, {"worst", e.worst}};
}

ordered_json coverage_json(const Coverage& c) {
  if (c.all == 0) return nullptr;
  return {{"n", c.all},
          {"inside", c.inside},
          {"share", static_cast<double>(c.inside) / static_cast<double>(c.all)},
          {"median_width", c.width}};
}

ordered_json target_json(const ServingTarget& t) {
  ordered_json tpot = summary_json(t.tpot), ttft = summary_json(t.ttft);
  tpot["p10_to_p90"] = coverage_json(t.tpot_coverage);
  ttft["p10_to_p90"] = coverage_json(t.ttft_coverage);
  return {{"name", t.name}, {"tpot", std::move(tpot)}, {"ttft", std::move(ttft)}};
}

ordered_json by_group(const std::vector<ServingComparison>& comparisons) {
  ordered_json groups = ordered_json::array();
  for (const auto& [key, of] : grouped(comparisons)) {
    const auto& [model, system, backend] = key;
    const ServingTarget errors = serving_target("", of);
    groups.push_back({{"model", model == "~all" ? "all" : model},
                      {"system", system},
                      {"backend", backend},
                      {"tpot", summary_json(errors.tpot)},
                      {"ttft", summary_json(errors.ttft)}});
  }
  return groups;
}

ordered_json by_target(const std::vector<ServingComparison>& comparisons) {
  ordered_json targets = ordered_json::array();
  for (const ServingTarget& t : serving_targets(comparisons)) targets.push_back(target_json(t));
  return targets;
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
    each += fmt::format("{}{}: {} of {}", each.empty() ? "" : "; ", pair, count.right, count.all);
  return fmt::format(
      "order of systems at equal tokens/s of a user: right in {} of {} pairs ({}): {}\n", all.right,
      all.all, format_percent(all.share()), each);
}

ordered_json order_json(const ServingOrder& order) {
  ordered_json pairs = ordered_json::array();
  for (const auto& [pair, count] : order.pairs())
    pairs.push_back({{"systems", pair}, {"right", count.right}, {"n", count.all}});
  return pairs;
}

/// Tokens/s of an accelerator by the fronts; null where one does not reach the tokens/s of a user.
ordered_json judged_json(const ServingOrder& order) {
  ordered_json judged = ordered_json::array();
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
  ordered_json groups = by_group(comparisons), targets = by_target(comparisons);
  ServingOrder order;
  for (const ServingComparison& c : comparisons) order.add(c);
  const ServingOrder::Count all = total(order.pairs());
  const std::map<std::string, std::size_t> reasons = left_out(comparisons);
  ordered_json out = ordered_json::array();
  for (const auto& [reason, count] : reasons) out.push_back({{"reason", reason}, {"rows", count}});
  const Table group_table = json_table(
      groups,
      "model = model | system = system | backend = backend | n = tpot.n count | "
      "TPOT MAPE = tpot.mape error | median = tpot.median error | p90 = tpot.p90 error | "
      "bias = tpot.bias error | n = ttft.n count | TTFT MAPE = ttft.mape error | "
      "median = ttft.median error | bias = ttft.bias error");
  const Table target_table = json_table(  // TTFT is judged by its median error
      targets,
      "judged together = name | n = tpot.n count | TPOT MAPE = tpot.mape error | "
      "p90 = tpot.p90 error | bias = tpot.bias error | n = ttft.n count | "
      "TTFT median = ttft.median error | bias = ttft.bias error");
  const Table interval_table =
      json_table(targets,
                 "measured in p10 to p90 = name | n = tpot.p10_to_p90.n count | "
                 "TPOT inside = tpot.p10_to_p90.share percent | p90/p10 = "
                 "tpot.p10_to_p90.median_width plain | "
                 "n = ttft.p10_to_p90.n count | TTFT inside = ttft.p10_to_p90.share percent | "
                 "p90/p10 = ttft.p10_to_p90.median_width plain");
  return {.parts = {group_table, left_out_lines(reasons), target_table, "\n", interval_table,
                    line_of(order)},
          .json = {{"schema", "orrery.validation/1"},
                   {"entries", std::move(groups)},
                   {"left_out", std::move(out)},
                   {"targets", std::move(targets)},
                   {"order", order_json(order)},
                   {"order_total", {{"right", all.right}, {"n", all.all}, {"share", all.share()}}},
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

/// A run beside its prediction.
struct RunRow {
  std::string run, kernels, fitted_on;
  HostCosts host;
  RunErrors errors;
};

RunRow row_of(const RunCase& run, const HostCosts& host, const std::string& fitted_on) {
  return {run.run().name, run.from_tables() ? "tables" : "model", fitted_on, host,
          run_errors(run.measured(), run.predicted(host))};
}

std::vector<RunRow> rows_of(const std::vector<std::unique_ptr<RunCase>>& runs) {
  std::vector<RunRow> rows;
  for (const auto& run : runs) {
    rows.push_back(row_of(*run, run->host(), "-"));
    std::vector<const RunCase*> others;
    for (const auto& other : runs)
      if (other != run) others.push_back(other.get());
    const std::string names =
        comma_joined(others, [](const auto* other) { return other->run().name; });
    if (!others.empty()) rows.push_back(row_of(*run, fitted_host(others), names));
  }
  return rows;
}

ordered_json errors_json(const RunErrors::Of& e) {
  return {{"mean", e.mean}, {"p50", e.p50}, {"p90", e.p90}, {"p99", e.p99}};
}

/// Measured runs with records of every request beside their simulation: each with the host
/// as configured, and with one or more others to learn from, with the host fitted to those.
/// @param folders of runs
/// @param tables folder of operator tables; empty: Orrery's models price iterations
Answer validate_runs(const std::vector<std::string>& folders, const std::string& tables,
                     ServingValidation& validation) {
  std::vector<std::unique_ptr<RunCase>> runs;
  for (const std::string& folder : folders) {
    ServingRun run = read_serving_run(folder);
    const std::string model = validation.model_of(run.model);
    if (model.empty())
      throw config::ConfigError(
          fmt::format("{}: error: no configuration of {} (--models names a folder with some)",
                      folder, run.model));
    runs.push_back(std::make_unique<RunCase>(std::move(run), model, tables));
  }
  std::string columns =
      "run = run | kernels = kernels | host fitted on = host_fitted_on | "
      "iteration = host_iteration_s s";
  for (const auto& [title, key] : {std::pair{"TTFT", "ttft"}, {"TPOT", "tpot"}, {"E2E", "e2el"}})
    columns += fmt::format(
        " | {0} mean = {1}.mean percent | {0} P50 = {1}.p50 percent | {0} P90 = {1}.p90 percent | "
        "{0} P99 = {1}.p99 percent",
        title, key);
  ordered_json entries = ordered_json::array();
  for (const RunRow& row : rows_of(runs))
    entries.push_back({{"run", row.run},
                       {"kernels", row.kernels},
                       {"host_fitted_on", row.fitted_on},
                       {"host_iteration_s", row.host.iteration.base()},
                       {"ttft", errors_json(row.errors.ttft)},
                       {"tpot", errors_json(row.errors.tpot)},
                       {"e2el", errors_json(row.errors.e2el)}});
  return {.parts = {json_table(entries, columns)},
          .json = {{"schema", "orrery.validation/1"}, {"runs", std::move(entries)}}};
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
    if (!files.empty() && std::filesystem::is_directory(files.front())) {
      ServingValidation validation(models);
      return validate_runs(files, tables, validation);
    }
    std::vector<ServingComparison> comparisons;
    std::string columns;
    for (const std::string& file : files) {
      const ServingRows table = read_serving_rows(file);
      columns = table.columns;
      std::optional<Progress> progress;
      const auto tell = [&progress](std::size_t all, const std::string& id) {
        if (!progress) progress.emplace("serving", all);
        progress->step(id);
      };
      for (ServingComparison& c : compare_served(table.rows, models, tell))
        comparisons.push_back(std::move(c));
    }
    write_rows(rows, columns, comparisons);
    return answer_of(comparisons);
  }
};

const RegisterQuestion<ServingQuestion> registered_serving("validate serving",
                                                           "measured runs of serving engines");

}  // namespace
}  // namespace orrery
