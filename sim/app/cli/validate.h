// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/results/table.h"
#include "sim/trace/atomic_file.h"
#include "validation/checks/published_comparison.h"

namespace orrery {

/// Rows of measured tables with their predictions, as one CSV. Without a path nothing is written.
class PredictionRows {
 public:
  /// @param predicted columns that follow those of the tables, with commas between them
  PredictionRows(const std::string& path, std::string predicted);

  /// Begins a table.
  /// @throws UsageError when a table before had other columns.
  void header(const std::string& columns);
  /// @param text the row as its file has it
  void row(const std::string& text, const std::vector<std::string>& predicted);
  /// The file is there once this has returned.
  void commit();

 private:
  std::unique_ptr<AtomicFile> file_;
  std::string predicted_;
  std::string columns_;
};

/// Six significant digits.
std::string predicted_text(double value);

/// A line for each reason why rows were not compared.
std::string left_out_lines(const std::map<std::string, std::size_t>& rows_by_reason);

/// YAML files of published rows below a folder of `validation`, by name.
std::vector<std::string> shipped_rows(const std::string& folder);

/// compare_published() with progress on standard error.
std::vector<PublishedComparison> compare_with_progress(const std::vector<std::string>& files);

/// Errors of each source, a row each.
Table source_table(const std::vector<PublishedSummary>& sources);

}  // namespace orrery
