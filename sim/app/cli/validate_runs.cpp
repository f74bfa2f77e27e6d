// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/validate_runs.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "validation/checks/run_validation.h"

namespace orrery {
namespace {

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
    std::string names;
    for (const auto& other : runs) {
      if (other == run) continue;
      others.push_back(other.get());
      names += (names.empty() ? "" : ", ") + other->run().name;
    }
    if (!others.empty()) rows.push_back(row_of(*run, fitted_host(others), names));
  }
  return rows;
}

nlohmann::ordered_json errors_json(const RunErrors::Of& e) {
  return {{"mean", e.mean}, {"p50", e.p50}, {"p90", e.p90}, {"p99", e.p99}};
}

}  // namespace

Answer validate_runs(const std::vector<std::string>& folders, const std::string& tables,
                     ServingValidation& validation) {
  std::vector<std::unique_ptr<RunCase>> runs;
  for (const std::string& folder : folders) {
    ServingRun run = read_serving_run(folder);
    const std::string model = validation.model_of(run.model);
    if (model.empty())
      throw config::ConfigError(folder + ": error: no configuration of " + run.model +
                                " (--models names a folder with some)");
    runs.push_back(std::make_unique<RunCase>(std::move(run), model, tables));
  }
  using Align = Table::Align;
  std::vector<Table::Column> columns = {
      {"run"}, {"kernels"}, {"host fitted on"}, {"iteration", Align::kRight}};
  for (const char* time : {"TTFT", "TPOT", "E2E"})
    for (const char* figure : {"mean", "P50", "P90", "P99"})
      columns.push_back({std::string(time) + " " + figure, Align::kRight});
  ToldRows told{Table(std::move(columns))};
  for (const RunRow& row : rows_of(runs)) {
    std::vector<std::string> cells = {row.run, row.kernels, row.fitted_on,
                                      format_si(row.host.iteration.base(), "s")};
    for (const RunErrors::Of& e : {row.errors.ttft, row.errors.tpot, row.errors.e2el})
      for (const double error : {e.mean, e.p50, e.p90, e.p99})
        cells.push_back(format_percent(error));
    told.add(std::move(cells), {{"run", row.run},
                                {"kernels", row.kernels},
                                {"host_fitted_on", row.fitted_on},
                                {"host_iteration_s", row.host.iteration.base()},
                                {"ttft", errors_json(row.errors.ttft)},
                                {"tpot", errors_json(row.errors.tpot)},
                                {"e2el", errors_json(row.errors.e2el)}});
  }
  return {.parts = {std::move(told.table)},
          .json = {{"schema", "orrery.validation/1"}, {"runs", std::move(told.json)}}};
}

}  // namespace orrery
