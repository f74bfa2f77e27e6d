// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <algorithm>

#include "sim/config/diagnostics.h"
#include "validation/importers/log_text.h"
#include "validation/importers/nccl_text.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

constexpr std::string_view kSizeColumn = "data_size";

/// The cells of a line between bars, without blanks around them.
std::vector<LogWord> split_cells(std::string_view line, int number) {
  std::vector<LogWord> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('|', at), line.size());
    const std::size_t first = std::min(line.find_first_not_of(" \t\r", at), end);
    std::string_view text = line.substr(first, end - first);
    text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
    cells.push_back({text, number, static_cast<int>(first) + 1});
    at = end + 1;
  }
  return cells;
}

class HcclReader {
 public:
  HcclReader(const std::string& path, const std::string& text, const ImportOptions& options)
      : path_(path), text_(text), options_(options) {
    diagnostics_.add_source(path, text);
  }

  ImportedTable read() {
    for (const std::string_view line : lines_of(text_)) {
      ++line_;
      read_line(line.substr(std::min(tag_of(line).length, line.size())));
    }
    diagnostics_.throw_if_errors();
    if (table_.rows.empty() && failed_ == 0)
      throw config::ConfigError(path_ + ": its tables have no rows; did the program fail?");
    if (failed_ > 0) note("left out " + std::to_string(failed_) + " times with wrong values");
    if (untyped_) note("no line tells the type (-d), so that precision is empty");
    return std::move(table_);
  }

 private:
  void note(const std::string& text) { table_.notes.push_back(path_ + ": " + text); }
  void error(const LogWord& word, std::string message) {
    diagnostics_.error({path_, word.line, word.column}, static_cast<int>(word.text.size()),
                       std::move(message));
  }

  void read_line(std::string_view line) {
    if (line.find(kSizeColumn) != line.npos && line.find('|') != line.npos) {
      begin_table(split_cells(line, line_));
    } else if (const std::string name = named_collective(line, "_test"); !name.empty()) {
      read_command(split_words(line, line_), name);
    } else if (readable_ && line.find('|') != line.npos) {
      read_row(split_cells(line, line_));
    }
  }

  void read_command(const std::vector<LogWord>& words, const std::string& name) {
    collective_ = name;
    type_.clear();
    operation_.clear();
    bool started = false;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string_view key = words[i].text, value = words[i + 1].text;
      started = started || key.find("_test") != key.npos;
      if (!started && (key == "-n" || key == "-np")) told_ranks_ = parse_count(value).value_or(0);
      if (started && key == "-d") type_ = value;
      if (started && key == "-o") operation_ = value;
    }
  }

  void begin_table(const std::vector<LogWord>& header) {
    size_ = time_ = check_ = header.size();
    for (std::size_t i = 0; i < header.size(); ++i) {
      const std::string_view name = header[i].text;
      if (name.starts_with(kSizeColumn)) size_ = i;
      if (name.find("time(us)") != name.npos) time_ = i;
      if (name.starts_with("check") || name.starts_with("verif")) check_ = i;
    }
    columns_ = header.size();
    readable_ = false;
    ranks_ = options_.ranks != 0 ? options_.ranks : told_ranks_;
    if (collective_.empty()) collective_ = options_.collective;
    if (size_ == columns_ || time_ == columns_ || check_ == columns_) {
      error(header[0],
            "a table of hccl_test without a size, a time in us and the result of its check");
    } else if (ranks_ == 0) {
      error(header[0], "no line before this table tells the number of ranks; say --ranks N");
    } else if (collective_.empty()) {
      error(header[0], "no line before this table names the program; say --collective NAME");
    } else {
      readable_ = true;
    }
  }

  void read_row(const std::vector<LogWord>& cells) {
    if (cells.size() != columns_) {
      error(cells[0], fmt::format("{} cells, but there are {} columns", cells.size(), columns_));
      return;
    }
    const auto bytes = parse_count(cells[size_].text);
    const auto time = parse_real(cells[time_].text);
    const std::string_view check = cells[check_].text;
    if (!bytes || *bytes == 0) {
      error(cells[size_], "a size is a whole number from 1 on");
    } else if (!time || *time <= 0) {
      error(cells[time_], "a time is a finite number above 0");
    } else if (check != "success" && check != "NULL") {  // NULL: not checked (-c 0)
      ++failed_;
    } else {
      untyped_ = untyped_ || type_.empty();
      const std::string precision = type_ == "bfp16" ? "bf16" : type_;
      table_.rows.push_back({options_.system,
                             collective_,
                             cell_of(precision),
                             ranks_,
                             *bytes,
                             *time,
                             "hccl_test",
                             {},
                             {},
                             {},
                             cell_of(type_),
                             cell_of(operation_),
                             {},
                             std::int64_t{1}});
    }
  }

  const std::string& path_;
  const std::string& text_;
  const ImportOptions& options_;
  config::Diagnostics diagnostics_;
  int line_ = 0;
  ImportedTable table_ = collective_measurements();
  std::string collective_, type_, operation_;
  std::int64_t told_ranks_ = 0, ranks_ = 0, failed_ = 0;
  std::size_t columns_ = 0, size_ = 0, time_ = 0, check_ = 0;
  bool readable_ = false, untyped_ = false;
};

}  // namespace

bool is_hccl_test(const std::string& text) {
  const std::vector<std::string_view> lines = lines_of(text);
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    const std::string_view columns = line.substr(std::min(line.find(kSizeColumn), line.size()));
    return columns.find("| alg_bandwidth") != line.npos ||
           columns.find("|alg_bandwidth") != line.npos;
  });
}

ImportedTable read_hccl_test(const std::string& path, const std::string& text,
                             const ImportOptions& options) {
  return HcclReader(path, text, options).read();
}

}  // namespace orrery
