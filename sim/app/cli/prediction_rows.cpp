// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/prediction_rows.h"

#include <array>
#include <cstdio>
#include <utility>

#include "sim/app/cli/verb.h"

namespace orrery {

PredictionRows::PredictionRows(const std::string& path, std::string predicted)
    : predicted_(std::move(predicted)) {
  if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
}

void PredictionRows::header(const std::string& columns) {
  if (!file_ || columns == columns_) return;
  if (!columns_.empty()) throw UsageError("--rows: the tables do not have the same columns");
  file_->stream() << columns << ',' << predicted_ << '\n';
  columns_ = columns;
}

void PredictionRows::row(const std::string& text, const std::vector<std::string>& predicted) {
  if (!file_) return;
  file_->stream() << text;
  for (const std::string& cell : predicted) file_->stream() << ',' << cell;
  file_->stream() << '\n';
}

void PredictionRows::commit() {
  if (file_) file_->commit();
}

std::string predicted_text(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

}  // namespace orrery
