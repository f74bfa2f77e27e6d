// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// A number for people, with three significant digits and an SI prefix: "1.72 s", "41.2 GB",
/// "12.3 k tokens/s". The same on every machine and in every locale.
/// Prefixes join the unit where it is a symbol (s, B, FLOP, W, J, Hz, per second or not); large
/// times stay in seconds, and only s, W and J are divided (ms, us, ns, ps). Of ms as for s.
std::string format_si(double value, std::string_view unit);

/// A share for people: "12.3 %".
/// @param digits behind the point
std::string format_percent(double share, int digits = 1);

/// A relative difference for people: "+12.3 %".
std::string format_difference(double share);

/// Columns that text takes on a terminal: UTF-8 code points, wide ones twice, combining ones not.
std::size_t display_width(std::string_view utf8);

/// Cells of text for people; programs have JSON.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// The same by titles alone, " | " between them; a title behind '>' is that of a right-aligned
  /// column: "input | >value | >share".
  static Table titled(std::string_view titles);

  /// @throws std::logic_error unless there is one cell a column.
  void add_row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace orrery
