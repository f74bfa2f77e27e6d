// SPDX-License-Identifier: Apache-2.0
// What the programs of nccl-tests (github.com/NVIDIA/nccl-tests) and rccl-tests
// (github.com/ROCm/rccl-tests) print. A run is
//   # nThread 1 nGpus 8 minBytes 8 ...
//   #  Rank  0 Group  0 Pid 1 on  host device  0 [0x07] NVIDIA H100 80GB HBM3      for each rank
//   #  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong
//   #   (B)  ...
//      1024    256  float    sum    -1  12.34  0.08  0.15  0  12.30  0.08  0.15  0
//   # Out of bounds values : 0 OK
// `time` is in us and the bandwidths in 10^9 B/s, first out of place, then in place
// (doc/PERFORMANCE.md there). Older versions print fewer columns, so that the header line says
// where each one stands. Lines of other programs stand between, and in the rows themselves.
#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "sim/config/diagnostics.h"
#include "validation/importers/importer.h"
#include "validation/importers/log_text.h"
#include "validation/importers/nccl_text.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

/// Half of the last digit of a number as it is printed.
double half_digit(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::size_t decimals = point == text.npos ? 0 : text.size() - point - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(decimals));
}

class NcclTestsReader {
 public:
  NcclTestsReader(const std::string& path, const ImportOptions& options)
      : path_(path), options_(options) {}

  ImportedTable read() {
    const std::string text = read_log(path_);
    check_collective(options_.collective);
    if (is_hccl_test(text)) return read_hccl_test(path_, text, options_);
    diagnostics_.add_source(path_, text);
    for (const std::string_view line : lines_of(text)) {
      ++line_;
      read_line(line);
    }
    for (auto& [name, run] : runs_) end_table(run);
    diagnostics_.throw_if_errors();
    require_rows();
    add_notes();
    return std::move(table_);
  }

 private:
  /// A run that is being printed.
  struct Run {
    std::string collective;
    NcclRanks ranks;
    NcclRanks::Communicator communicator;
    NcclColumns columns;
    std::string of_table;  ///< the collective of the table
    bool in_table = false, readable = false;
    std::int64_t rows = 0;       ///< rows of the table
    bool rank_checked = false;   ///< the bandwidths were found not to be those of the ranks
    std::vector<LogWord> begun;  ///< cells of a row that a line of a log has cut
  };

  void require_rows() const {
    if (tables_ == 0)
      throw config::ConfigError(path_ +
                                ": holds no table of nccl-tests (a line '# size count type ...')");
    if (rows_ == 0)
      throw config::ConfigError(path_ + ": its tables have no rows" +
                                (torn_ > 0 ? " that are whole" : "; did the program fail?"));
  }

  void add_notes() {
    const auto note = [this](std::int64_t count, const std::string& text) {
      if (count > 0) table_.notes.push_back(path_ + ": " + text);
    };
    const auto left_out = [&](std::int64_t count, const char* one, const char* what) {
      note(count, fmt::format("left out {} {}{} {}", count, one, count == 1 ? "" : "s", what));
    };
    left_out(empty_, "time", "of 0 bytes");
    left_out(wrong_, "time", "with wrong values (#wrong above 0)");
    left_out(torn_, "row", "that other lines of the log cut");
    left_out(headless_, "row", "that no header stands before");
    left_out(empty_tables_, "table", "without rows");
    note(split_ - 1, fmt::format("up to {} groups ran at the same time; ranks and nodes are those "
                                 "of one",
                                 split_));
    note(longer_,
         fmt::format("{} {} a list of ranks without gaps that is shorter than --ranks says",
                     longer_, longer_ == 1 ? "table has" : "tables have"));
    note(mixed_ ? 1 : 0, "ranks have accelerators of several names; system is the first one");
    note(repeated_,
         fmt::format("{} {} as an earlier one but for the time: runs that were repeated, "
                     "or with settings that the text does not tell",
                     repeated_, repeated_ == 1 ? "row is" : "rows are"));
  }

  void error(const LogWord& word, std::string message) {
    diagnostics_.error({path_, word.line, word.column}, static_cast<int>(word.text.size()),
                       std::move(message));
  }

  void read_line(std::string_view line) {
    const LogTag tag = tag_of(line);
    std::vector<LogWord> words = split_words(line, line_);
    while (!words.empty() && words.front().column <= static_cast<int>(tag.length)) {
      LogWord& first = words.front();
      const auto end = static_cast<std::size_t>(first.column - 1) + first.text.size();
      if (end <= tag.length) {
        words.erase(words.begin());
        continue;
      }
      first.text.remove_prefix(tag.length - static_cast<std::size_t>(first.column - 1));
      first.column = static_cast<int>(tag.length) + 1;
    }
    if (words.empty()) return;
    Run& run = run_of(tag.stream);
    if (read_row(run, words, line)) return;
    library_.read(line);
    // The end of a run names its program once more ("Collective test concluded"); what follows may
    // be another one.
    if (std::string name = named_collective(line, "_perf");
        !name.empty() && line.find("concluded") == line.npos) {
      run.collective = name;
      last_named_ = std::move(name);
    }
    read_comment(run, words);
  }

  /// The run that a stream prints. Many lines look as if they had the name of one before them.
  Run& run_of(std::string_view stream) {
    constexpr std::size_t kMostStreams = 4096;
    const auto known = runs_.find(stream);
    if (known != runs_.end()) return known->second;
    return runs_[runs_.size() < kMostStreams ? std::string(stream) : std::string()];
  }

  /// A comment may stand behind what a log has printed without a line end.
  void read_comment(Run& run, const std::vector<LogWord>& words) {
    for (std::size_t at = 0; at + 2 < words.size(); ++at) {
      if (!words[at].text.ends_with('#')) continue;
      const std::string_view key = words[at + 1].text;
      if (key == "nThread" || (key == "Rank" && run.rows > 0)) begin_run(run);
      if (key == "Rank") {
        const std::string fault = run.ranks.add(&words[at + 1], words.size() - at - 1);
        if (!fault.empty()) error(words[at + 2], fault);
      } else if (key == "size" && words[at + 2].text == "count") {
        begin_table(run, {words.begin() + static_cast<std::ptrdiff_t>(at), words.end()});
      } else if (key == "Out") {
        end_table(run);
        run.collective.clear();
        last_named_.clear();
      } else {
        continue;
      }
      return;
    }
  }

  void begin_run(Run& run) {
    end_table(run);
    run.ranks = {};
    run.rows = 0;
  }

  void end_table(Run& run) {
    if (!run.begun.empty()) ++torn_;
    run.begun.clear();
    if (run.in_table && run.readable && run.rows == 0) ++empty_tables_;
    run.in_table = false;
  }

  void begin_table(Run& run, const std::vector<LogWord>& header) {
    end_table(run);
    ++tables_;
    run.in_table = true;
    run.readable = false;
    run.rows = 0;
    const auto columns = NcclColumns::from_header(header);
    if (!columns)
      error(header[1],
            "a table without the columns type, time, busbw and #wrong (with -C 1 "
            "nccl-tests prints times of the CPU)");
    std::string fault;
    for (const auto& [name, other] : runs_)
      if (&other != &run && !other.in_table) run.ranks.add_apart(other.ranks);
    run.communicator = run.ranks.communicator(options_.ranks, fault);
    if (!fault.empty()) error(header[1], fault);
    run.of_table = !run.collective.empty() ? run.collective
                   : !last_named_.empty()  ? last_named_
                                           : options_.collective;
    if (run.of_table.empty())
      error(header[1], "no line before this table names the program; say --collective NAME");
    run.readable = columns && fault.empty() && !run.of_table.empty();
    run.columns = columns.value_or(NcclColumns{});
    run.rank_checked = false;
    split_ = std::max(split_, run.communicator.groups);
    const std::int64_t listed = run.communicator.listed;
    longer_ += listed != 0 && run.communicator.ranks > listed ? 1 : 0;
    mixed_ = mixed_ || (options_.system.empty() && run.ranks.mixed());
  }

  /// @return whether the line has a row, or a part of one
  bool read_row(Run& run, const std::vector<LogWord>& words, std::string_view line) {
    if (words[0].text.starts_with('#')) return false;
    if (run.columns.count == 0) {
      if (!run.in_table) refuse_early_row(words);
      return false;
    }
    NcclCells found = find_nccl_row(words, run.columns);
    if (found.cells.empty()) {
      if (run.begun.empty() || !continue_nccl_row(run.begun, words, run.columns)) return false;
      found.cells = std::exchange(run.begun, {});
    } else if (!run.begun.empty()) {
      run.begun.clear();
      ++torn_;
    }
    if (found.cells.size() == run.columns.count) {
      add_row(run, found.cells);
    } else if (!found.misfit || line.find("CCL ") != line.npos ||
               found.misfit->text.find_first_of("[:") != std::string_view::npos) {
      run.begun = std::move(found.cells);
    } else if (run.readable) {
      error(*found.misfit, fmt::format("'{}' is no number", found.misfit->text));
    }
    return true;
  }

  void refuse_early_row(const std::vector<LogWord>& words) {
    if (words.size() < 5 || !parse_count(words[0].text) || !parse_count(words[1].text) ||
        !nccl_precision(words[2].text))
      return;
    ++headless_;
    if (tables_ == 0) error(words[0], "a row before the header of its table");
  }

  void add_row(Run& run, const std::vector<LogWord>& cells) {
    ++run.rows;
    ++rows_;
    if (!run.readable) return;  // what is wrong with the table was said at its header
    for (std::size_t i = 0; i < run.columns.halves.size(); ++i) add_time(run, cells, i);
  }

  void add_time(Run& run, const std::vector<LogWord>& cells, std::size_t half) {
    const NcclColumns::Half& columns = run.columns.halves[half];
    const std::int64_t bytes = *parse_count(cells[0].text);
    const std::string_view type = cells[run.columns.type].text;
    const auto time = parse_real(cells[columns.time].text);
    constexpr int kGiga = 9;
    const auto bus = parse_real(cells[columns.bus].text, kGiga);
    const auto wrong = is_wrong_result(cells[columns.wrong].text, type, run.columns.deviations);
    if (bytes == 0) {
      ++empty_;
    } else if (!time || *time <= 0) {
      error(cells[columns.time], "a time is a finite number above 0");
    } else if (!bus || *bus < 0) {
      error(cells[columns.bus], "a bandwidth is a finite number from 0 on");
    } else if (!wrong) {
      error(cells[columns.wrong], "#wrong is a number or N/A");
    } else if (*wrong) {
      ++wrong_;
    } else {
      check_ranks(run, cells, columns);
      append(run, cells, half, *time, *bus);
    }
  }

  /// A list of ranks that is cut at its end shows in the bandwidths.
  void check_ranks(Run& run, const std::vector<LogWord>& cells, const NcclColumns::Half& half) {
    const std::vector<double> factors = bus_factors(run.of_table, run.communicator.ranks);
    const std::string_view algorithm = cells[half.algorithm].text, bus = cells[half.bus].text;
    if (factors.empty() || run.rank_checked) return;
    const double low = whole_number<double>(algorithm).value_or(0) - 1.2 * half_digit(algorithm);
    const double high = low + 2.4 * half_digit(algorithm);
    const double rate = whole_number<double>(bus).value_or(0), slack = 1.2 * half_digit(bus);
    const bool fits = std::any_of(factors.begin(), factors.end(), [&](double factor) {
      return rate + slack >= low * factor && rate - slack <= high * factor;
    });
    if (fits) return;
    run.rank_checked = true;
    error(cells[half.bus],
          fmt::format("a bus bandwidth of {} where the algorithm has {} is not that of {} on {} "
                      "ranks; is the list of ranks cut? Then say --ranks N",
                      bus, algorithm, run.of_table, run.communicator.ranks));
  }

  void append(const Run& run, const std::vector<LogWord>& cells, std::size_t half, double time,
              double bus) {
    const NcclColumns& columns = run.columns;
    const std::string system = options_.system.empty() ? run.ranks.device() : options_.system;
    const std::string type(cells[columns.type].text);
    const ImportedCell operation =
        columns.redop == 0 ? ImportedCell() : cell_of(std::string(cells[columns.redop].text));
    const auto root =
        columns.root == 0 ? std::nullopt : whole_number<std::int64_t>(cells[columns.root].text);
    const NcclRanks::Communicator& who = run.communicator;
    const std::int64_t bytes = *parse_count(cells[0].text);
    const char* placement = half == 0 ? "out_of_place" : "in_place";
    const auto [key, is_new] = keys_.emplace(run.of_table, type, to_text(operation),
                                             root.value_or(-1), who.ranks, bytes, half);
    repeated_ += is_new ? 0 : 1;
    table_.rows.push_back({system, run.of_table, std::string(nccl_precision(type).value_or(type)),
                           who.ranks, bytes, time, library_.source(), cell_of(who.nodes), placement,
                           bus, type, operation, cell_of(root), who.groups});
  }

  const std::string& path_;
  const ImportOptions& options_;
  config::Diagnostics diagnostics_;
  int line_ = 0;
  ImportedTable table_ = collective_measurements();
  std::map<std::string, Run, std::less<>> runs_;  // by who printed it
  std::string last_named_;
  NcclLibrary library_;
  std::set<std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t,
                      std::int64_t, std::size_t>>
      keys_;
  std::int64_t tables_ = 0, rows_ = 0, empty_ = 0, wrong_ = 0, torn_ = 0, empty_tables_ = 0,
               headless_ = 0;
  std::int64_t repeated_ = 0, longer_ = 0, split_ = 1;
  bool mixed_ = false;
};

const ImporterRegistry::Register registered_nccl_tests(
    "nccl-tests",
    "printed tables of all_reduce_perf and its sisters (nccl-tests, rccl-tests, "
    "hccl_test)",
    [](const std::string& path, const ImportOptions& options) {
      return NcclTestsReader(path, options).read();
    });

}  // namespace

}  // namespace orrery
