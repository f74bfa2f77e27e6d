// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/app/cli/collective_summary.h"
#include "sim/app/cli/error_columns.h"
#include "sim/app/cli/prediction_rows.h"
#include "sim/app/questions/base/question.h"
#include "sim/units/text.h"
#include "validation/calibration/error_json.h"
#include "validation/checks/collective_validation.h"

namespace orrery {
namespace {

using Key = CollectiveValidation::Key;
using GroupOf = std::map<Key, CollectiveValidation::Group>::const_iterator;

std::vector<std::string> cells_of(const PricedTransfer& priced, const char* provenance) {
  const bool latency_bound = to_seconds(priced.cost.latency) * 2 > priced.isolated_time;
  return {predicted_text(priced.isolated_time.base() * 1e6), provenance,
          latency_bound ? "latency" : "bandwidth", priced.algorithm, priced.protocol};
}

/// Groups by table, all systems last; of a system all rows first, then precisions and collectives.
std::vector<GroupOf> ordered(const CollectiveValidation& validation) {
  std::vector<GroupOf> order;
  for (auto it = validation.groups().begin(); it != validation.groups().end(); ++it)
    order.push_back(it);
  const std::vector<std::string>& classes = byte_classes();
  const auto place = [&](auto it) {
    const Key& key = it->first;
    const auto size = std::find(classes.begin(), classes.end(), key[3]) - classes.begin();
    return std::tuple(key[0], key[1] == "all", key[1], key[2] != "all", key[2], size);
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return place(a) < place(b); });
  return order;
}

/// Which parameters each system is predicted with.
std::string machine_lines(const CollectiveValidation& validation) {
  std::string lines;
  for (const auto& [system, machine] : validation.machines()) {
    if (!machine) continue;
    const NetworkCalibration* of = machine->calibration.get();
    lines += system + ": " + machine->name + ", " + (of ? "parameters of " + of->id : "priors") +
             (of && of->system != machine->name ? ", extrapolated\n" : "\n");
  }
  return lines;
}

Answer answer_of(const CollectiveValidation& validation) {
  using enum ErrorFigure;
  const std::vector<ErrorFigure> figures = {kCount, kMape, kMedian, kP90, kBias, kWorst};
  ToldRows rows{ErrorColumns({"table", "system", "of", "class"}).add(figures).table()};
  for (const auto it : ordered(validation)) {
    const auto& [key, group] = *it;
    const ErrorSummary errors = summarise(group.rows);
    std::vector<std::string> cells(key.begin(), key.end());
    add_errors(cells, errors, figures);
    nlohmann::ordered_json entry = {
        {"table", key[0]}, {"system", key[1]}, {"precision", key[2]}, {"class", key[3]}};
    entry.update(to_json(errors));
    entry["worst_row"] = group.worst_row;
    rows.add(std::move(cells), std::move(entry));
  }
  nlohmann::ordered_json calibrations = nlohmann::ordered_json::object();
  for (const auto& [system, machine] : validation.machines())
    if (machine && machine->calibration) calibrations[system] = machine->calibration->id;
  return {.parts = {machine_lines(validation), std::move(rows.table),
                    left_out_lines(validation.left_out())},
          .json = {{"schema", "orrery.collectives/1"},
                   {"calibrations", std::move(calibrations)},
                   {"entries", std::move(rows.json)},
                   {"left_out", validation.left_out()}}};
}

struct CollectivesQuestion {
  std::vector<std::string> files;
  std::string rows;                  ///< path for a CSV of rows and predictions, or empty
  std::string calibration = "auto";  ///< calibration of the network: auto, none, a name or a path
  bool held_out = false;             ///< only rows that fits leave out
  bool summary = false;              ///< what the model is good for, in one table

  void take(Options& options) {
    options.positionals("FILE", files, "tables (CSV, plain or gzip)");
    options.option("--rows", rows, "write the rows with predictions to this CSV");
    options.option("--calibration,--from", calibration,
                   "auto (default: of the system itself), none (priors), that of another system "
                   "such as dgx_h100, or a path");
    options.flag("--held-out", held_out, "only rows that no fit has seen");
    options.flag("--summary", summary,
                 "held-out rows of all systems and of siblings, published rows by source, each "
                 "beside what is demanded");
    options.excludes("--summary", {"--held-out", "--rows", "--calibration"});
  }

  Answer answer() const {
    if (summary) return summarise_collectives(files);
    CollectiveValidation validation(calibration, held_out);
    PredictionRows rows_file(rows, "predicted_us,provenance,bound,algorithm,protocol");
    for (const std::string& file : files) {
      const CollectiveTable table = read_collective_table(file);
      rows_file.header(table.header);
      validation.add(table, [&](const CollectiveRow& row, const PricedTransfer& priced,
                                const char* provenance) {
        rows_file.row(row.text, cells_of(priced, provenance));
      });
    }
    validation.check_rows();
    rows_file.commit();
    return answer_of(validation);
  }
};

const RegisterQuestion<CollectivesQuestion> registered_collectives(
    "validate collectives", "tables of measured collectives");

}  // namespace
}  // namespace orrery
