// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/error_columns.h"

#include <utility>

namespace orrery {
namespace {

std::string title_of(ErrorFigure figure) {
  switch (figure) {
    case ErrorFigure::kCount:
      return "n";
    case ErrorFigure::kMape:
      return "MAPE";
    case ErrorFigure::kMedian:
      return "median";
    case ErrorFigure::kP90:
      return "p90";
    case ErrorFigure::kBias:
      return "bias";
    default:
      return "worst";
  }
}

double share_of(const ErrorSummary& errors, ErrorFigure figure) {
  switch (figure) {
    case ErrorFigure::kMape:
      return errors.mape;
    case ErrorFigure::kMedian:
      return errors.median;
    case ErrorFigure::kP90:
      return errors.p90;
    case ErrorFigure::kBias:
      return errors.bias;
    default:
      return errors.worst;
  }
}

}  // namespace

ErrorColumns::ErrorColumns(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) columns_.push_back({key});
}

ErrorColumns& ErrorColumns::add(const std::vector<ErrorFigure>& figures, const std::string& name) {
  bool named = name.empty();
  for (const ErrorFigure figure : figures) {
    std::string title = title_of(figure);
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
    if (figure == ErrorFigure::kCount) {
      row.push_back(std::to_string(errors.count));
    } else {
      row.push_back(errors.count == 0 ? "-" : format_percent(share_of(errors, figure)));
    }
  }
}

}  // namespace orrery
