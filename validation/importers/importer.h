// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

namespace orrery {

/// One cell of an imported table; empty where the file does not tell.
using ImportedCell = std::variant<std::monostate, std::int64_t, double, std::string>;

/// Measurements of another tool in our columns and units.
struct ImportedTable {
  std::vector<std::string> columns;
  std::vector<std::vector<ImportedCell>> rows;
  std::vector<std::string> notes;  ///< what was left out, and why
  std::string document{};          ///< of an importer that makes YAML: what `-o` writes
};

/// What the files may not tell themselves.
struct ImportOptions {
  std::string system;      ///< accelerator measured, or the system that a topology extends; empty:
                           ///< what the file tells
  std::string collective;  ///< of nccl-tests, where the text does not name the program
};

/// A kind of file that `orrery import` reads.
struct Importer {
  const char* kind;  ///< the word on the command line
  const char* help;
  /// @throws config::ConfigError: unreadable, not of this kind, or wrong in a place that is named
  ImportedTable (*read)(const std::string& path, const ImportOptions& options);
};

/// Every importer, in the order in which they are listed to users.
const std::vector<Importer>& importers();

/// The text of a cell in a CSV file and in tables, without quotes; numbers in the shortest form
/// that reads back as the same double.
std::string to_text(const ImportedCell& cell);

/// Writes a table as CSV (RFC 4180).
void write_csv(const ImportedTable& table, std::ostream& out);

// The importers themselves; each is described in its file.
ImportedTable import_nccl_tests(const std::string& path, const ImportOptions& options);
ImportedTable import_nsys(const std::string& path, const ImportOptions& options);
ImportedTable import_ncu(const std::string& path, const ImportOptions& options);
ImportedTable import_vllm(const std::string& path, const ImportOptions& options);
ImportedTable import_nccl_topology(const std::string& path, const ImportOptions& options);
ImportedTable import_sglang(const std::string& path, const ImportOptions& options);

}  // namespace orrery
