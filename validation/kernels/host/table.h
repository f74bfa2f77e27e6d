// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace orrery::measure {

/// One value of a row: text, whole number, or real number (printed so that it reads back exactly).
using Cell = std::variant<std::string, std::int64_t, double>;

/// The rows of one CSV file. Column names carry their unit: "latency_us", "size_bytes".
class Table {
 public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}

  /// @throws std::logic_error when the row has another number of cells than there are columns.
  void add_row(std::vector<Cell> cells);

  /// Also writes the header now, and every row when it is added, to `out` (which must outlive the
  /// table): the rows survive a crash. @throws std::logic_error when there already are rows.
  void mirror(std::ostream& out);

  const std::vector<std::string>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<Cell>> rows_;
  std::ostream* mirror_ = nullptr;
};

/// RFC 4180 text of the table, header first.
std::string to_csv(const Table& table);

}  // namespace orrery::measure
