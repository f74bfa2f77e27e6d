// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/collective_summary.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/app/cli/published_table.h"
#include "sim/config/library.h"
#include "validation/calibration/error_json.h"
#include "validation/checks/collective_validation.h"
#include "validation/checks/published_comparison.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

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

/// One line: errors by class of bytes, largest first.
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
    if (!table.empty() && key[0] != table) continue;
    if (key[1] == system && key[2] == "all" && key[3] == bytes)
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
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
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
        std::string(sibling.measured) + " by parameters of " + sibling.parameters;
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
  using Align = Table::Align;
  std::vector<Table::Column> columns = {{"mean absolute error of held-out rows"},
                                        {"n", Align::kRight}};
  for (const std::string& bytes : largest_first()) columns.push_back({bytes, Align::kRight});
  columns.push_back({"demanded"});
  ToldRows rows{Table(std::move(columns))};
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
  for (const PublishedSummary& s : sources) {
    entries.push_back({{"source", s.source},
                       {"n", s.rows},
                       {"mape", s.mean_absolute},
                       {"worst", s.worst},
                       {"worst_row", s.worst_id}});
  }
  return entries;
}

}  // namespace

Answer summarise_collectives(const std::vector<std::string>& files) {
  std::vector<CollectiveTable> tables;
  tables.reserve(files.size());
  for (const std::string& file : files) tables.push_back(read_collective_table(file));
  ToldRows rows = told(lines_of(tables));
  const std::vector<PublishedSummary> sources = by_source(compare_with_progress(published_files()));
  const std::size_t parameters = protocol_parameters().size();
  return {.parts = {std::move(rows.table),
                    "fitted parameters of a system: " + std::to_string(parameters) +
                        ", demanded: at most " + std::to_string(kMostParameters) +
                        "\n\npublished rows that set no parameter, demanded: " + kDemandPublished +
                        "\n",
                    source_table(sources)},
          .json = {{"schema", "orrery.collectives_summary/1"},
                   {"entries", std::move(rows.json)},
                   {"parameters_of_a_system", parameters},
                   {"published", to_json(sources)}}};
}

}  // namespace orrery
