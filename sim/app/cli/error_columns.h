// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/machine/calibration.h"
#include "sim/results/table.h"

namespace orrery {

/// A figure of an error summary that a table shows.
enum class ErrorFigure { kCount, kMape, kMedian, kP90, kBias, kWorst };

/// Columns of a table of errors: `keys` to the left, then figures of errors.
class ErrorColumns {
 public:
  explicit ErrorColumns(const std::vector<std::string>& keys);

  /// Adds the figures of one set of rows.
  /// @param name stands before the title of the first figure that is no count; empty: none
  ErrorColumns& add(const std::vector<ErrorFigure>& figures, const std::string& name = "");
  /// Adds a column of another kind.
  ErrorColumns& add(Table::Column column);

  Table table() const { return Table(columns_); }

 private:
  std::vector<Table::Column> columns_;
};

/// Appends figures to a row of a table. Without rows the count is 0 and the others are "-".
void add_errors(std::vector<std::string>& row, const ErrorSummary& errors,
                const std::vector<ErrorFigure>& figures);

/// A line for each reason why rows were not compared.
std::string left_out_lines(const std::map<std::string, std::size_t>& rows_by_reason);

}  // namespace orrery
