// SPDX-License-Identifier: Apache-2.0
#include "sim/app/csv.h"

#include <fstream>
#include <iterator>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

/// Splits a text into records of cells.
class Reader {
 public:
  Reader(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  bool at_end() const { return position_ >= text_.size(); }
  int line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> cells(1);
    while (!at_end()) {
      const char c = text_[position_++];
      if (c == '"') {
        quoted(cells.back());
      } else if (c == ',') {
        cells.emplace_back();
      } else if (c == '\n') {
        ++line_;
        break;
      } else if (c != '\r') {
        cells.back() += c;
      }
    }
    return cells;
  }

 private:
  void quoted(std::string& cell) {
    const int opened = line_;
    while (!at_end()) {
      const char c = text_[position_++];
      if (c == '\n') ++line_;
      if (c != '"') {
        cell += c;
      } else if (!at_end() && text_[position_] == '"') {
        cell += '"';
        ++position_;
      } else {
        return;
      }
    }
    throw config::ConfigError(path_ + ":" + std::to_string(opened) + ": a quote is not closed");
  }

  std::string path_;
  std::string text_;
  std::size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<CsvRow> read_csv(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw config::ConfigError(path + ": cannot be read");
  Reader reader(path, {std::istreambuf_iterator<char>(file), {}});
  if (reader.at_end())
    throw config::ConfigError(path + ": is empty; the first line names the columns");
  const std::vector<std::string> columns = reader.record();
  std::vector<CsvRow> rows;
  while (!reader.at_end()) {
    const int line = reader.line();
    const std::vector<std::string> cells = reader.record();
    if (cells.size() == 1 && cells[0].empty()) continue;  // an empty line
    if (cells.size() != columns.size()) {
      throw config::ConfigError(path + ":" + std::to_string(line) + ": " +
                                std::to_string(cells.size()) + " cells, but there are " +
                                std::to_string(columns.size()) + " columns");
    }
    CsvRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = cells[i];
  }
  return rows;
}

}  // namespace orrery
