// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "sim/app/cli/validate.h"
#include "sim/app/questions/base/verb.h"
#include "sim/results/json_table.h"
#include "sim/units/text.h"
#include "validation/calibration/error_json.h"
#include "validation/checks/collective_validation.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;
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
    const auto size = std::ranges::find(classes, key.bytes) - classes.begin();
    return std::tuple(key.table, key.system == "all", key.system, key.engine, key.of != "all",
                      key.of, size);
  };
  std::ranges::sort(order, [&](auto a, auto b) { return place(a) < place(b); });
  return order;
}

/// Which parameters each system is predicted with.
std::string machine_lines(const CollectiveValidation& validation) {
  std::string lines;
  for (const auto& [system, machine] : validation.machines()) {
    if (!machine) continue;
    const NetworkCalibration* of = machine->calibration.get();
    lines += fmt::format("{}: {}, {}{}\n", system, machine->name,
                         of ? "parameters of " + of->id : "priors",
                         of && of->system != machine->name ? ", extrapolated" : "");
  }
  return lines;
}

Answer answer_of(const CollectiveValidation& validation) {
  ordered_json entries = ordered_json::array();
  bool of_engines = false;
  for (const auto it : ordered(validation)) {
    const auto& [key, group] = *it;
    ordered_json& entry =
        entries.emplace_back(ordered_json{{"table", key.table}, {"system", key.system}});
    if (!key.engine.framework.empty()) {
      entry["framework"] = key.engine.framework;
      entry["version"] = key.engine.version;
      of_engines = true;
    }
    entry["precision"] = key.of;
    entry["class"] = key.bytes;
    entry.update(to_json(summarise(group.rows)));
    entry["worst_row"] = group.worst_row;
  }
  ordered_json calibrations = ordered_json::object();
  for (const auto& [system, machine] : validation.machines())
    if (machine && machine->calibration) calibrations[system] = machine->calibration->id;
  return {.parts = {machine_lines(validation),
                    json_table(entries,
                               std::string("table = table | system = system | ") +
                                   (of_engines ? "engine = framework | version = version | " : "") +
                                   "of = precision | class = class | "
                                   "n = count count | MAPE = mape error | median = median error | "
                                   "p90 = p90 error | bias = bias error | worst = worst error"),
                    left_out_lines(validation.left_out())},
          .json = {{"schema", "orrery.collectives/1"},
                   {"calibrations", std::move(calibrations)},
                   {"entries", std::move(entries)},
                   {"left_out", validation.left_out()}}};
}

/// A system whose parameters predict another one, as if this had not been measured.
struct Sibling {
  const char* measured;  ///< system as tables name it
  const char* parameters;
};
constexpr std::array kSiblings = {Sibling{"h200_sxm", "dgx_h100"}, Sibling{"gb200", "dgx_b200"}};

constexpr const char* kDemandAll = "5 / 9 / 8 %";
constexpr const char* kDemandWorst = "10 % each";
constexpr const char* kDemandSibling = "8 / 12 / 12 %";
constexpr const char* kDemandPublished = "10 %";
constexpr std::size_t kMostParameters = 20;

struct ClassError {
  ErrorSummary errors;
  std::string system;  ///< system of the class where this is one of several
};

/// Classes of bytes as the table has them.
std::vector<std::string> largest_first() {
  return {byte_classes().rbegin(), byte_classes().rend()};
}

/// A line of the summary: errors by class of bytes, largest first.
struct Line {
  std::string what;
  std::vector<ClassError> classes;
  std::string demand;
};

/// @param table "": all of them together
ErrorSummary errors_of(const CollectiveValidation& validation, const std::string& table,
                       const std::string& system, const std::string& bytes) {
  std::vector<Comparison> rows;
  for (const auto& [key, group] : validation.groups()) {
    if (!table.empty() && key.table != table) continue;
    if (key.system == system && key.of == "all" && key.bytes == bytes)
      rows.insert(rows.end(), group.rows.begin(), group.rows.end());
  }
  return summarise(rows);
}

/// "" of all tables: their rows together.
std::string label(const std::string& table, const std::string& what) {
  return (table.empty() ? "all tables" : table) + ", " + what;
}

Line line_of(const CollectiveValidation& validation, const std::string& table,
             const std::string& system, const std::string& what, const char* demand) {
  Line line{label(table, what), {}, demand};
  for (const std::string& bytes : largest_first())
    line.classes.push_back({errors_of(validation, table, system, bytes), {}});
  return line;
}

Line worst_line(const CollectiveValidation& validation, const std::string& table) {
  Line line{label(table, "worst system"), {}, kDemandWorst};
  for (const std::string& bytes : largest_first()) {
    ClassError worst;
    for (const auto& [system, machine] : validation.machines()) {
      const ErrorSummary errors = errors_of(validation, table, system, bytes);
      if (errors.count > 0 && errors.mape > worst.errors.mape) worst = {errors, system};
    }
    line.classes.push_back(std::move(worst));
  }
  return line;
}

/// Rows of the sibling's measured system, by the parameters of the other one.
CollectiveValidation sibling_errors(const std::vector<CollectiveTable>& tables,
                                    const Sibling& sibling) {
  CollectiveValidation validation(sibling.parameters, true);
  for (CollectiveTable table : tables) {
    std::erase_if(table.rows,
                  [&](const CollectiveRow& row) { return row.system != sibling.measured; });
    validation.add(table);
  }
  return validation;
}

std::vector<Line> lines_of(const std::vector<CollectiveTable>& tables) {
  CollectiveValidation own("auto", true);
  std::vector<std::string> names;
  for (const CollectiveTable& table : tables) {
    own.add(table);
    const std::string name = to_string(table.kind);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  own.check_rows();
  if (names.size() > 1) names.emplace_back();
  std::vector<Line> lines;
  for (const std::string& name : names) {
    lines.push_back(line_of(own, name, "all", "all systems", kDemandAll));
    lines.push_back(worst_line(own, name));
  }
  for (const Sibling& sibling : kSiblings) {
    const CollectiveValidation foreign = sibling_errors(tables, sibling);
    if (foreign.groups().empty()) continue;
    const std::string what =
        fmt::format("{} by parameters of {}", sibling.measured, sibling.parameters);
    lines.push_back(line_of(foreign, names.back(), sibling.measured, what, kDemandSibling));
  }
  return lines;
}

/// Files of published rows that set no parameter, beside the library; those that are there.
std::vector<std::string> published_files() {
  const std::set<std::string> unfitted = {"collectives", "nccl_sweeps", "expert_exchange",
                                          "hccl_a3"};
  std::vector<std::string> files = shipped_rows("published");
  std::erase_if(files, [&](const std::string& file) {
    return !unfitted.contains(std::filesystem::path(file).stem().string());
  });
  return files;
}

ToldRows told(const std::vector<Line>& lines) {
  std::string titles = "mean absolute error of held-out rows | >n";
  for (const std::string& bytes : largest_first()) titles += " | >" + bytes;
  ToldRows rows{Table::titled(titles + " | demanded")};
  for (const Line& line : lines) {
    std::int64_t count = 0;
    bool one_system = true;
    std::vector<std::string> cells;
    ordered_json entry = {{"rows", line.what}, {"demanded", line.demand}};
    for (std::size_t i = 0; i < line.classes.size(); ++i) {
      const auto& [of, system] = line.classes[i];
      count += of.count;
      one_system = one_system && system.empty();
      cells.push_back(of.count > 0 ? format_percent(of.mape) + (system.empty() ? "" : " " + system)
                                   : "-");
      ordered_json& errors = entry[largest_first()[i]];
      errors = to_json(of);
      if (!system.empty()) errors["system"] = system;
    }
    cells.insert(cells.begin(), {line.what, one_system ? std::to_string(count) : "-"});
    cells.push_back(line.demand);
    rows.add(std::move(cells), std::move(entry));
  }
  return rows;
}

ordered_json to_json(const std::vector<PublishedSummary>& sources) {
  ordered_json entries = ordered_json::array();
  for (const PublishedSummary& s : sources)
    entries.push_back({{"source", s.source},
                       {"n", s.rows},
                       {"mape", s.mean_absolute},
                       {"worst", s.worst},
                       {"worst_row", s.worst_id}});
  return entries;
}

/// Tells how good the model of collectives is on rows that set none of its parameters, beside what
/// is demanded: measured tables by class of bytes, siblings by each other's parameters, published
/// rows by source.
Answer summarise_collectives(const std::vector<std::string>& files) {
  std::vector<CollectiveTable> tables;
  tables.reserve(files.size());
  for (const std::string& file : files) tables.push_back(read_collective_table(file));
  ToldRows rows = told(lines_of(tables));
  const std::vector<PublishedSummary> sources = by_source(compare_with_progress(published_files()));
  const std::size_t parameters = protocol_parameters().size();
  return {.parts = {std::move(rows.table),
                    fmt::format("fitted parameters of a system: {}, demanded: at most {}\n\n"
                                "published rows that set no parameter, demanded: {}\n",
                                parameters, kMostParameters, kDemandPublished),
                    source_table(sources)},
          .json = {{"schema", "orrery.collectives_summary/1"},
                   {"entries", std::move(rows.json)},
                   {"parameters_of_a_system", parameters},
                   {"published", to_json(sources)}}};
}

struct CollectivesQuestion {
  std::vector<std::string> files;
  std::string rows;                  ///< path for a CSV of rows and predictions, or empty
  std::string calibration = "auto";  ///< calibration of the network: auto, none, a name or a path
  bool held_out = false;             ///< only rows that fits leave out
  bool summary = false;              ///< what the model is good for, in one table
  std::vector<std::string> where;    ///< conditions that rows meet: "version=0.24.0"

  void take(Options& options) {
    options.positionals("FILE", files, "tables (CSV, plain or gzip)");
    options.option("--rows", rows, "write the rows with predictions to this CSV");
    options.option("--calibration,--from", calibration,
                   "auto (default: of the system itself), none (priors), that of another system "
                   "such as dgx_h100, or a path");
    options.options("--where", where, kWhereHelp);
    options.flag("--held-out", held_out, "only rows that no fit has seen");
    options.flag("--summary", summary,
                 "held-out rows of all systems and of siblings, published rows by source, each "
                 "beside what is demanded");
    options.excludes("--summary", {"--held-out", "--rows", "--calibration", "--where"});
  }

  Answer answer() const {
    if (summary) return summarise_collectives(files);
    CollectiveValidation validation(calibration, held_out);
    PredictionRows rows_file(rows, "predicted_us,provenance,bound,algorithm,protocol");
    for (const std::string& file : files) {
      const CollectiveTable table = read_collective_table(file, row_conditions(where));
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
