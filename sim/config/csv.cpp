// SPDX-License-Identifier: Apache-2.0
#include "sim/config/csv.h"

#include <algorithm>

#include "sim/config/input_files.h"
#include "sim/config/text_check.h"
#include "sim/units/spelling.h"

namespace orrery::config {
namespace {

constexpr std::size_t kMostBytes = 1024 * InputFiles::kMebibyte;

}  // namespace

CsvReader::CsvReader(std::string name, std::string text, CsvRecords records)
    : name_(std::move(name)), text_(std::move(text)), records_(records) {
  if (std::string_view(text_).starts_with(kByteOrderMark)) {
    position_ = line_start_ = kByteOrderMark.size();
  }
  while (row_.empty() && !at_end()) read_record();
  if (row_.empty()) {
    cells_ = {{{}, 1, 1}};
    error(0, "the file is empty; the first line names the columns");
  }
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (find(cells_[i].text))
      error(i, "column '" + std::string(cells_[i].text) + "' is there twice");
    columns_.emplace_back(cells_[i].text);
  }
  throw_if_errors();
}

std::optional<std::size_t> CsvReader::find(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

std::size_t CsvReader::column(const std::string& name) const {
  if (const auto place = find(name)) return *place;
  throw_error(text_, {name_, 1, 1}, 1, "no column '" + name + "'", nearest_name(name, columns_));
}

bool CsvReader::next() {
  while (!at_end()) {
    read_record();
    if (row_.empty()) continue;
    if (records_ == CsvRecords::kMayEndEarly && cells_.size() < columns_.size()) {
      cells_.resize(columns_.size(), {{}, record_line_, static_cast<int>(row_.size()) + 1});
    }
    if (cells_.size() == columns_.size()) return true;
    error_at(cells_.front(), static_cast<int>(row_.size()),
             std::to_string(cells_.size()) + (cells_.size() == 1 ? " cell" : " cells") +
                 ", but there are " + std::to_string(columns_.size()) + " columns");
  }
  return false;
}

void CsvReader::error(std::size_t cell, std::string message, std::string suggestion) {
  const Cell& where = cells_[cell];
  error_at(where, static_cast<int>(where.text.size()), std::move(message), std::move(suggestion));
}

void CsvReader::error_at(const Cell& cell, int length, std::string message,
                         std::string suggestion) {
  if (!diagnostics_.has_errors()) diagnostics_.add_source(name_, text_);
  diagnostics_.error({name_, cell.line, cell.column}, length, std::move(message),
                     std::move(suggestion));
}

bool CsvReader::take(char c) {
  if (at_end() || text_[position_] != c) return false;
  ++position_;
  return true;
}

void CsvReader::read_record() {
  cells_.clear();
  unquoted_.clear();
  record_line_ = line_;
  const std::size_t start = position_;
  do {
    read_cell();
  } while (take(','));
  row_ = std::string_view(text_).substr(start, position_ - start);
  take('\r');
  if (take('\n')) {
    ++line_;
    line_start_ = position_;
  }
}

void CsvReader::read_cell() {
  Cell cell{{}, line_, static_cast<int>(position_ - line_start_) + 1};
  if (take('"')) {
    cell.text = read_quoted(cell);
  } else {
    std::size_t end = std::min(text_.find_first_of(",\n", position_), text_.size());
    if (end > position_ && text_[end - 1] == '\r' && (end == text_.size() || text_[end] == '\n')) {
      --end;
    }
    cell.text = std::string_view(text_).substr(position_, end - position_);
    position_ = end;
  }
  cells_.push_back(cell);
}

/// The cell whose opening quote at `start` was read. Leaves the position at a comma or line end.
std::string_view CsvReader::read_quoted(const Cell& start) {
  std::string& text = unquoted_.emplace_back();
  bool closed = false;
  while (!at_end() && !closed) {
    const char c = text_[position_++];
    if (c == '\n') {
      ++line_;
      line_start_ = position_;
    }
    closed = c == '"' && !take('"');
    if (!closed) text += c;
  }
  if (!closed) error_at(start, 1, "a quote is not closed");
  const std::size_t end = std::min(text_.find_first_of(",\r\n", position_), text_.size());
  if (end > position_) {
    error_at({{}, line_, static_cast<int>(position_ - line_start_) + 1},
             static_cast<int>(end - position_), "text after the closing quote of a cell");
    position_ = end;
  }
  return text;
}

std::vector<CsvRow> read_csv(const std::string& path) {
  FileText file = input_files().read(path, kMostBytes);
  if (!file.fault.empty()) throw ConfigError(path + ": " + file.fault);
  CsvReader reader(path, std::move(file.text));
  std::vector<CsvRow> rows;
  while (reader.next()) {
    CsvRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < reader.columns().size(); ++i) {
      row[reader.columns()[i]] = reader.cell(i);
    }
  }
  reader.throw_if_errors();
  return rows;
}

}  // namespace orrery::config
