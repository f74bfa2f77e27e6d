// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/error_columns.h"

#include <utility>

namespace orrery {
namespace {

struct FigureKind {
  const char* title;
  double ErrorSummary::*share;  ///< null: the count
};

/// In the order of ErrorFigure.
constexpr FigureKind kFigureKinds[] = {{"n", nullptr},
                                       {"MAPE", &ErrorSummary::mape},
                                       {"median", &ErrorSummary::median},
                                       {"p90", &ErrorSummary::p90},
                                       {"bias", &ErrorSummary::bias},
                                       {"worst", &ErrorSummary::worst}};

}  // namespace

ErrorColumns::ErrorColumns(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) columns_.push_back({key});
}

ErrorColumns& ErrorColumns::add(const std::vector<ErrorFigure>& figures, const std::string& name) {
  bool named = name.empty();
  for (const ErrorFigure figure : figures) {
    std::string title = kFigureKinds[static_cast<std::size_t>(figure)].title;
    if (!named && figure != ErrorFigure::kCount) {
      title.insert(0, name + " ");
      named = true;
    }
    columns_.push_back({std::move(title), Table::Align::kRight});
  }
  return *this;
}

ErrorColumns& ErrorColumns::add(Table::Column column) {
  columns_.push_back(std::move(column));
  return *this;
}

void add_errors(std::vector<std::string>& row, const ErrorSummary& errors,
                const std::vector<ErrorFigure>& figures) {
  for (const ErrorFigure figure : figures) {
    const auto share = kFigureKinds[static_cast<std::size_t>(figure)].share;
    if (share == nullptr) {
      row.push_back(std::to_string(errors.count));
    } else {
      row.push_back(errors.count == 0 ? "-" : format_percent(errors.*share));
    }
  }
}

std::string left_out_lines(const std::map<std::string, std::size_t>& rows_by_reason) {
  std::string lines;
  for (const auto& [reason, count] : rows_by_reason)
    lines += "left out: " + std::to_string(count) + " rows, " + reason + "\n";
  return lines;
}

}  // namespace orrery
