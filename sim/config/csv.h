// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/diagnostics.h"

namespace orrery::config {

/// Whether records must have a cell for each column.
enum class CsvRecords {
  kWhole,        ///< others are errors
  kMayEndEarly,  ///< cells that are missing at the end are empty
};

/// Goes through a CSV text record by record (RFC 4180: quoted cells may hold commas, quotes and
/// line ends). The first line names the columns; empty lines are passed over. Cells are views into
/// the text, so that tables of 10^6 rows are cheap; they hold until the next call of next(). Errors
/// are collected, those of the caller included, so that a file's faults appear together.
class CsvReader {
 public:
  /// @param name what messages call the text
  /// @throws ConfigError when it is empty, or a column is named twice
  CsvReader(std::string name, std::string text, CsvRecords records = CsvRecords::kWhole);
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<std::string>& columns() const { return columns_; }
  /// Where the column stands; nothing if there is none of that name.
  std::optional<std::size_t> find(std::string_view column) const;
  /// The same for one that must be there. @throws ConfigError
  std::size_t column(const std::string& name) const;

  /// Goes to the next record with a cell for each column; records of another length are errors.
  /// False at the end.
  bool next();
  /// Line of the current record, the header being line 1.
  int line() const { return record_line_; }
  /// The current record as it stands in the text, without its line end.
  std::string_view row() const { return row_; }
  std::string_view cell(std::size_t index) const { return cells_[index].text; }

  /// Remembers that a cell of the current record (after construction: of the header) is wrong.
  void error(std::size_t cell, std::string message, std::string suggestion = {});
  /// @throws ConfigError with everything collected, if there is an error.
  void throw_if_errors() const { diagnostics_.throw_if_errors(); }

 private:
  struct Cell {
    std::string_view text;
    int line = 0;
    int column = 0;
  };

  bool at_end() const { return position_ >= text_.size(); }
  bool take(char c);
  void read_record();
  void read_cell();
  std::string_view read_quoted(const Cell& start);
  void error_at(const Cell& cell, int length, std::string message, std::string suggestion = {});

  std::string name_;
  std::string text_;
  CsvRecords records_;
  std::vector<std::string> columns_;
  std::size_t position_ = 0, line_start_ = 0;
  int line_ = 1, record_line_ = 1;
  std::string_view row_;
  std::vector<Cell> cells_;
  std::deque<std::string> unquoted_;  // cells that had quotes; a deque keeps the views valid
  Diagnostics diagnostics_;
};

/// Cells of one row by column name.
using CsvRow = std::map<std::string, std::string>;

/// Reads a whole CSV file.
/// @throws ConfigError with file and line: unreadable, no header, a row with another number of
/// cells, an open quote.
std::vector<CsvRow> read_csv(const std::string& path);

}  // namespace orrery::config
