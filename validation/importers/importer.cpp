// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/importer.h"

#include <ostream>

#include "sim/units/text.h"

namespace orrery {
namespace {

void write_cell(std::ostream& out, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out << text;
    return;
  }
  out << '"';
  for (const char c : text) out << (c == '"' ? "\"\"" : std::string(1, c));
  out << '"';
}

}  // namespace

ImportedTable import_file(const std::string& kind, const std::string& path,
                          const ImportOptions& options) {
  return ImporterRegistry::at("importer", kind)(path, options);
}

std::string to_text(const ImportedCell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&cell)) return print_number(*real);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return {};
}

void write_csv(const ImportedTable& table, std::ostream& out) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i > 0) out << ',';
    write_cell(out, table.columns[i]);
  }
  out << '\n';
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out << ',';
      write_cell(out, to_text(row[i]));
    }
    out << '\n';
  }
}

}  // namespace orrery
