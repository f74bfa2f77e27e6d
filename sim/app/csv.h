// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace orrery {

/// Cells of one row by column name.
using CsvRow = std::map<std::string, std::string>;

/// Reads a CSV file (RFC 4180: quoted cells may hold commas, quotes and line ends) whose first line
/// names the columns.
/// @throws config::ConfigError with file and line: unreadable, no header, a row with another number
/// of cells, an open quote.
std::vector<CsvRow> read_csv(const std::string& path);

}  // namespace orrery
