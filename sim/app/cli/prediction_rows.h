// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/trace/atomic_file.h"

namespace orrery {

/// Rows of measured tables with their predictions, as one CSV. Without a path nothing is written.
class PredictionRows {
 public:
  /// @param predicted columns that follow those of the tables, with commas between them
  PredictionRows(const std::string& path, std::string predicted);

  bool wanted() const { return file_ != nullptr; }
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

}  // namespace orrery
