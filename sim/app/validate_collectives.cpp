// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/app/commands.h"
#include "sim/app/error_json.h"
#include "sim/app/network_pricing.h"
#include "sim/config/load.h"
#include "sim/results/atomic_file.h"
#include "sim/results/table.h"
#include "sim/units/text.h"
#include "validation/calibration/collective_predictor.h"
#include "validation/calibration/errors.h"

namespace orrery {
namespace {

/// table, system, precision or collective, class
using Key = std::array<std::string, 4>;

struct Group {
  std::vector<Comparison> rows;
  std::string worst_row;
  double worst = -1;
};

/// A system as its rows are predicted.
struct Machine {
  std::string name;
  std::shared_ptr<const NetworkCalibration> calibration;  ///< none: priors
  std::unique_ptr<CollectivePredictor> predictor;

  const char* provenance(const CollectiveRow& row) const {
    if (!calibration) return "analytic";
    const bool own = calibration->system == name &&
                     calibration->covers(Bytes(static_cast<double>(row.bytes)), row.ranks);
    return own ? "calibrated" : "extrapolated";
  }
};

struct Validation {
  std::map<std::string, std::optional<Machine>> machines;  ///< by the name that tables use
  std::map<Key, Group> groups;
  std::map<std::string, std::size_t> left_out;  ///< rows by reason
};

std::optional<Machine> machine_of(const std::string& accelerator, const std::string& calibration) {
  const std::string name = measured_system(accelerator);
  if (name.empty()) return {};
  const config::Library& library = config::default_library();
  auto system = config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
  Machine machine;
  machine.name = name;
  const std::string file = network_calibration_file(calibration, system);
  if (!file.empty()) {
    machine.calibration = loaded_network_calibration(file);
    machine.calibration->apply(system);
  }
  machine.predictor = std::make_unique<CollectivePredictor>(system);
  return machine;
}

void add(Group& group, const Comparison& comparison, const CollectiveRow& row) {
  group.rows.push_back(comparison);
  if (std::abs(comparison.error()) <= group.worst) return;
  group.worst = std::abs(comparison.error());
  group.worst_row = row.text;
}

/// The rows with their predictions.
class RowsFile {
 public:
  explicit RowsFile(const std::string& path) {
    if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
  }
  void header(const std::string& columns) {
    if (!file_ || columns == columns_) return;
    if (!columns_.empty()) throw UsageError("--rows: the tables do not have the same columns");
    file_->stream() << columns << ",predicted_us,provenance,bound,algorithm,protocol\n";
    columns_ = columns;
  }
  void row(const std::string& text, const PricedTransfer& priced, const char* provenance) {
    if (!file_) return;
    std::array<char, 40> number{};
    std::snprintf(number.data(), number.size(), "%.6g", priced.isolated_time.base() * 1e6);
    const Seconds latency = to_seconds(priced.cost.latency);
    const bool latency_bound = latency * 2 > priced.isolated_time;
    file_->stream() << text << ',' << number.data() << ',' << provenance << ','
                    << (latency_bound ? "latency" : "bandwidth") << ',' << priced.algorithm << ','
                    << priced.protocol << '\n';
  }
  void commit() {
    if (file_) file_->commit();
  }

 private:
  std::unique_ptr<AtomicFile> file_;
  std::string columns_;
};

void validate_table(const CollectiveTable& table, const CollectivesArguments& arguments,
                    RowsFile& rows_file, Validation& validation) {
  rows_file.header(table.header);
  const std::string name = to_string(table.kind);
  for (const CollectiveRow& row : table.rows) {
    auto [at, added] = validation.machines.try_emplace(row.system);
    if (added) at->second = machine_of(row.system, arguments.calibration);
    if (!at->second) {
      ++validation.left_out["no system of '" + row.system + "' has protocols"];
      continue;
    }
    if (arguments.held_out && !is_held_out(row)) continue;
    const std::vector<PricedTransfer> ways = at->second->predictor->priced(table.kind, row);
    const PricedTransfer& fastest = *std::min_element(
        ways.begin(), ways.end(),
        [](const auto& a, const auto& b) { return a.isolated_time < b.isolated_time; });
    rows_file.row(row.text, fastest, at->second->provenance(row));
    const Comparison comparison{fastest.isolated_time.base() * 1e6, row.latency_us};
    for (const std::string& system : {row.system, std::string("all")}) {
      for (const std::string& label : {row.precision, row.collective, std::string("all")})
        add(validation.groups[{name, system, label, byte_class(row.bytes)}], comparison, row);
    }
  }
}

/// By table, then all systems last; of a system all rows first, then precisions and collectives.
std::vector<std::map<Key, Group>::const_iterator> ordered(const Validation& validation) {
  std::vector<std::map<Key, Group>::const_iterator> order;
  for (auto it = validation.groups.begin(); it != validation.groups.end(); ++it)
    order.push_back(it);
  const std::vector<std::string> classes = {"<1MiB", "1-8MiB", ">8MiB"};
  const auto place = [&](auto it) {
    const Key& key = it->first;
    const auto size = std::find(classes.begin(), classes.end(), key[3]) - classes.begin();
    return std::tuple(key[0], key[1] == "all", key[1], key[2] != "all", key[2], size);
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return place(a) < place(b); });
  return order;
}

void print(const Validation& validation) {
  using Align = Table::Align;
  for (const auto& [system, machine] : validation.machines) {
    if (!machine) continue;
    std::cout << system << ": " << machine->name << ", "
              << (machine->calibration ? "parameters of " + machine->calibration->id
                                       : std::string("priors"))
              << "\n";
  }
  Table table({{"table"},
               {"system"},
               {"of"},
               {"class"},
               {"n", Align::kRight},
               {"MAPE", Align::kRight},
               {"median", Align::kRight},
               {"p90", Align::kRight},
               {"bias", Align::kRight},
               {"worst", Align::kRight}});
  for (const auto it : ordered(validation)) {
    const auto& [key, group] = *it;
    const ErrorSummary e = summarise(group.rows);
    table.add_row({key[0], key[1], key[2], key[3], std::to_string(e.count), format_percent(e.mape),
                   format_percent(e.median), format_percent(e.p90), format_percent(e.bias),
                   format_percent(e.worst)});
  }
  table.print(std::cout);
  for (const auto& [reason, count] : validation.left_out)
    std::cout << "left out: " << count << " rows, " << reason << "\n";
}

nlohmann::ordered_json report(const Validation& validation) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const auto it : ordered(validation)) {
    const auto& [key, group] = *it;
    nlohmann::ordered_json entry = {
        {"table", key[0]}, {"system", key[1]}, {"precision", key[2]}, {"class", key[3]}};
    entry.update(to_json(summarise(group.rows)));
    entry["worst_row"] = group.worst_row;
    entries.push_back(std::move(entry));
  }
  nlohmann::ordered_json calibrations = nlohmann::ordered_json::object();
  for (const auto& [system, machine] : validation.machines) {
    if (machine && machine->calibration) calibrations[system] = machine->calibration->id;
  }
  return {{"schema", "orrery.collectives/1"},
          {"calibrations", std::move(calibrations)},
          {"entries", std::move(entries)},
          {"left_out", validation.left_out}};
}

}  // namespace

ExitCode validate_collectives_command(const CollectivesArguments& arguments) {
  Validation validation;
  RowsFile rows_file(arguments.rows);
  for (const std::string& file : arguments.files)
    validate_table(read_collective_table(file), arguments, rows_file, validation);
  if (validation.groups.empty()) {
    std::string reasons = "no row can be predicted";
    for (const auto& [reason, count] : validation.left_out) reasons += "\n  " + reason;
    throw UsageError(reasons);
  }
  rows_file.commit();
  if (arguments.json) {
    std::cout << report(validation).dump(2) << "\n";
  } else {
    print(validation);
  }
  return ExitCode::kOk;
}

}  // namespace orrery
