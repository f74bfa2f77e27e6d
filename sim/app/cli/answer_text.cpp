// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/answer_text.h"

#include <algorithm>
#include <iostream>
#include <string>

#include "sim/trace/atomic_file.h"

namespace orrery {
namespace {

std::string pad(const std::string& cell, std::size_t width, Table::Align align, bool last) {
  const std::string space(width - display_width(cell), ' ');
  if (align == Table::Align::kRight) return space + cell;
  return last ? cell : cell + space;
}

}  // namespace

void print(const Table& table, std::ostream& out, bool colour) {
  const std::vector<Table::Column>& columns = table.columns();
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    titles.push_back(columns[c].title);
    widths.push_back(display_width(columns[c].title));
    for (const auto& row : table.rows()) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  const auto print_line = [&](const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const bool last = c + 1 == cells.size();
      out << (c == 0 ? "" : "  ") << pad(cells[c], widths[c], columns[c].align, last);
    }
  };
  out << (colour ? "\033[1m" : "");
  print_line(titles);
  out << (colour ? "\033[0m" : "") << '\n';
  for (const auto& row : table.rows()) {
    print_line(row);
    out << '\n';
  }
}

void print(const Answer& answer, std::ostream& out) {
  for (const Answer::Part& part : answer.parts) {
    if (const auto* table = std::get_if<Table>(&part)) {
      print(*table, out);
    } else {
      out << std::get<std::string>(part);
    }
  }
}

void print_csv(const std::vector<std::vector<std::string>>& rows, std::ostream& out) {
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out << (i == 0 ? "" : ",");
      if (row[i].find_first_of(",\"\r\n") == std::string::npos) {
        out << row[i];
        continue;
      }
      out << '"';
      for (const char c : row[i]) out << (c == '"' ? "\"\"" : std::string(1, c));
      out << '"';
    }
    out << '\n';
  }
}

void write_to(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (path.empty()) return write(std::cout);
  AtomicFile file(path);
  write(file.stream());
  file.commit();
}

void print_answer(const Answer& answer, bool json) {
  if (json) {
    std::cout << answer.json.dump(2) << "\n";
  } else {
    print(answer, std::cout);
  }
}

}  // namespace orrery
