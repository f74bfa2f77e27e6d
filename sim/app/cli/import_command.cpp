// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/cli/answer_text.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "validation/importers/importer.h"

namespace orrery {
namespace {

/// Names of all importers.
std::vector<std::string> import_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [name, importer] : ImporterRegistry::items()) kinds.push_back(name);
  return kinds;
}

struct ImportArguments {
  std::string kind, output, system, accelerator, collective, decimal_mark;
  std::vector<std::string> files;
  int ranks = 0;
  bool json = false;

  void take(Options& options) {
    options.positional("KIND", kind, comma_joined(import_kinds()));
    options.positionals("FILE", files, "files of that kind; text may be gzip");
    options.option("-o,--output", output, "CSV file; without it only the summary");
    options.option(
        "--system", system,
        "accelerator that was measured (nccl-tests), system of the library that the "
        "topology extends (nccl-topology, infragraph), or ASTRA-sim's file of the system "
        "(astra-network)");
    options.option("--accelerator", accelerator,
                   "accelerator of the library that each xpu is (infragraph)");
    options.option("--collective", collective,
                   "collective, where the text does not name the program (nccl-tests)");
    options.number("--ranks", ranks,
                   "ranks of a communicator, where the text does not list them all (nccl-tests)", 1,
                   1000000);
    options.option("--decimal-mark", decimal_mark,
                   "point or comma, where numbers do not tell which one they have (ncu)");
    options.json(json);
  }
  ExitCode run() const;
};

constexpr std::size_t kMostRowsShown = 20;
constexpr std::size_t kWidestCell = 40;

void require_importer(const std::string& kind) {
  if (ImporterRegistry::find(kind) != nullptr) return;
  std::string list;
  for (const auto& [name, importer] : ImporterRegistry::items())
    list += fmt::format("\n  {}: {}", name, importer.help);
  throw UsageError(fmt::format("no importer '{}'{}\nthere are:{}", kind,
                               did_you_mean(nearest_name(kind, import_kinds())), list));
}

/// The tables of all files below each other, with the file as a further column.
ImportedTable import_files(const ImportArguments& arguments) {
  ImportedTable all;
  for (const std::string& file : arguments.files) {
    ImportedTable table = import_file(arguments.kind, file,
                                      {arguments.system, arguments.collective, arguments.ranks,
                                       arguments.decimal_mark, arguments.accelerator});
    all.columns = std::move(table.columns);
    for (auto& row : table.rows) {
      row.emplace_back(file);
      all.rows.push_back(std::move(row));
    }
    all.notes.insert(all.notes.end(), table.notes.begin(), table.notes.end());
    if (!table.document.empty() && arguments.files.size() > 1)
      throw UsageError(arguments.kind + " reads one file");
    all.document = std::move(table.document);
  }
  all.columns.emplace_back("file");
  return all;
}

/// Names of kernels are templates of hundreds of characters: their begin tells them apart.
std::string shortened(const std::string& text) {
  if (display_width(text) <= kWidestCell) return text;
  std::size_t end = kWidestCell - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

/// Columns that no row fills are left out: benchmarks differ in the quantiles that they have.
std::vector<std::size_t> filled_columns(const ImportedTable& table) {
  std::vector<std::size_t> filled;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const bool any = std::ranges::any_of(table.rows, [i](const auto& row) {
      return !std::holds_alternative<std::monostate>(row[i]);
    });
    if (any) filled.push_back(i);
  }
  return filled;
}

void print_summary(const ImportedTable& table, const ImportArguments& arguments) {
  const std::vector<std::size_t> shown_columns = filled_columns(table);
  std::vector<Table::Column> columns;
  for (const std::size_t i : shown_columns) {
    const bool is_text =
        !table.rows.empty() && std::holds_alternative<std::string>(table.rows.front()[i]);
    columns.push_back({table.columns[i], is_text ? Table::Align::kLeft : Table::Align::kRight});
  }
  Table text(std::move(columns));
  const std::size_t shown = std::min(table.rows.size(), kMostRowsShown);
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<std::string> cells;
    cells.reserve(shown_columns.size());
    for (const std::size_t column : shown_columns)
      cells.push_back(shortened(to_text(table.rows[i][column])));
    text.add_row(std::move(cells));
  }
  print(text, std::cout);
  if (shown < table.rows.size()) std::cout << "and " << table.rows.size() - shown << " more rows\n";
  for (const std::string& note : table.notes) std::cout << "note: " << note << "\n";
  std::cout << table.rows.size() << (table.rows.size() == 1 ? " row" : " rows")
            << (arguments.output.empty() ? "" : " in " + arguments.output) << "\n";
}

nlohmann::ordered_json to_json(const ImportedCell& cell) {
  return std::visit(
      [](const auto& value) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return nullptr;
        } else {
          return value;
        }
      },
      cell);
}

void print_json(const ImportedTable& table, const ImportArguments& arguments) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    nlohmann::ordered_json& object = rows.emplace_back(nlohmann::ordered_json::object());
    for (std::size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = to_json(row[i]);
  }
  nlohmann::ordered_json json = {{"schema", "orrery.import/1"}, {"kind", arguments.kind},
                                 {"files", arguments.files},    {"columns", table.columns},
                                 {"notes", table.notes},        {"rows", std::move(rows)}};
  // What other programs print may be no UTF-8.
  std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

ExitCode ImportArguments::run() const {
  require_importer(kind);
  const ImportedTable table = import_files(*this);
  if (!output.empty())
    write_to(output, [&](std::ostream& out) {
      if (table.document.empty()) {
        write_csv(table, out);
      } else {
        out << table.document;
      }
    });
  if (json) {
    print_json(table, *this);
  } else {
    print_summary(table, *this);
  }
  return ExitCode::kOk;
}

const RegisterVerb<ImportArguments> registered_import(
    "import", "measurements of other tools as one CSV file");

}  // namespace
}  // namespace orrery
