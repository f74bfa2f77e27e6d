// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/config/registry.h"

namespace orrery {

/// One cell of an imported table; empty where the file does not tell.
using ImportedCell = std::variant<std::monostate, std::int64_t, double, std::string>;

template <class Value>
ImportedCell cell_of(const std::optional<Value>& value) {
  return value ? ImportedCell(*value) : ImportedCell();
}
/// Nothing for an empty text.
inline ImportedCell cell_of(const std::string& text) {
  return text.empty() ? ImportedCell() : ImportedCell(text);
}

/// Measurements of another tool in our columns and units.
struct ImportedTable {
  std::vector<std::string> columns{};
  std::vector<std::vector<ImportedCell>> rows{};
  std::vector<std::string> notes{};  ///< what was left out, and why
  std::string document{};            ///< text of an importer that makes YAML: what `-o` writes
};

/// What the files may not tell themselves.
struct ImportOptions {
  std::string system;      ///< accelerator measured, the system that a topology extends, or the
                           ///< system file of ASTRA-sim; empty: what the file tells
  std::string collective;  ///< collective of nccl-tests, where the text does not name the program
  std::int64_t ranks{};    ///< ranks of a communicator of nccl-tests, where the text does not list
                           ///< them all; 0: as the text says
  std::string decimal_mark{};  ///< mark in numbers of ncu: point, comma; empty: as they tell
  std::string accelerator{};   ///< accelerator of the library that an `xpu` of infragraph is
};

/// Reads a kind of file that `orrery import` takes. A file adds one with an
/// ImporterRegistry::Register object, whose name is the word on the command line.
/// @throws config::ConfigError: unreadable, not of this kind, or wrong in a place that is named
using Importer = ImportedTable (*)(const std::string& path, const ImportOptions& options);
using ImporterRegistry = Registry<Importer>;

/// Reads `path` by the importer of that name.
/// @throws config::ConfigError as the importer does, and for a name that is none
ImportedTable import_file(const std::string& kind, const std::string& path,
                          const ImportOptions& options);

/// The text of a cell in a CSV file and in tables, without quotes; numbers in the shortest form
/// that reads back as the same double.
std::string to_text(const ImportedCell& cell);

/// Writes a table as CSV (RFC 4180).
void write_csv(const ImportedTable& table, std::ostream& out);

}  // namespace orrery
