// SPDX-License-Identifier: Apache-2.0
#include "host/table.h"

#include <array>
#include <charconv>
#include <stdexcept>

namespace orrery::measure {
namespace {

/// Shortest text that reads back as the same number, whatever the locale.
template <class Number>
std::string number_text(Number value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string in_quotes(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string cell_text(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return in_quotes(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return number_text(*whole);
  return number_text(std::get<double>(cell));
}

std::string header_text(const std::vector<std::string>& columns) {
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i)
    text += (i > 0 ? "," : "") + in_quotes(columns[i]);
  return text + '\n';
}

std::string row_text(const std::vector<Cell>& row) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + cell_text(row[i]);
  return text + '\n';
}

}  // namespace

void Table::add_row(std::vector<Cell> cells) {
  if (cells.size() != columns_.size()) {
    throw std::logic_error("a row of " + std::to_string(cells.size()) + " cells for " +
                           std::to_string(columns_.size()) + " columns");
  }
  if (mirror_ != nullptr) *mirror_ << row_text(cells) << std::flush;
  rows_.push_back(std::move(cells));
}

void Table::mirror(std::ostream& out) {
  if (!rows_.empty()) throw std::logic_error("a table is mirrored before its first row");
  mirror_ = &out;
  out << header_text(columns_) << std::flush;
}

std::string to_csv(const Table& table) {
  std::string text = header_text(table.columns());
  for (const auto& row : table.rows()) text += row_text(row);
  return text;
}

}  // namespace orrery::measure
