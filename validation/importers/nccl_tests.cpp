// SPDX-License-Identifier: Apache-2.0
// What the programs of nccl-tests (github.com/NVIDIA/nccl-tests) print. A run is
//   # nThread 1 nGpus 8 minBytes 8 ...
//   #  Rank  0 Group  0 Pid  1 on  host device  0 [0x07] NVIDIA H100 80GB HBM3      for each rank
//   #  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong
//   #   (B)  ...
//      1024    256  float    sum    -1  12.34  0.08  0.15  0  12.30  0.08  0.15  0
//   # Out of bounds values : 0 OK
// `time` is in us and `busbw` in 10^9 B/s, first out of place, then in place (doc/PERFORMANCE.md
// there). Older versions print fewer columns, so the header line says where each one stands. Lines
// of other programs stand between.
#include <algorithm>
#include <array>
#include <set>

#include "sim/config/diagnostics.h"
#include "sim/config/packed_file.h"
#include "sim/units/spelling.h"
#include "validation/importers/importer.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

using namespace std::string_view_literals;

const std::vector<std::string>& collectives() {
  static const std::vector<std::string> all = {
      "all_reduce", "all_gather", "reduce_scatter", "alltoall",  "broadcast",
      "reduce",     "sendrecv",   "gather",         "hypercube", "scatter"};
  return all;
}

/// The type names of nccl-tests, and those of precisions where there is one.
constexpr auto kTypes = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"float", "fp32"},
    {"half", "fp16"},
    {"bfloat16", "bf16"},
    {"f8e4m3", "fp8"},
    {"f8e5m2", "fp8"},
    {"fp8_e4m3", "fp8"},
    {"fp8_e5m2", "fp8"},
    {"int8", "int8"},
    {"uint8", "uint8"},
    {"char", "int8"},
    {"int32", "int32"},
    {"uint32", "uint32"},
    {"int", "int32"},
    {"int64", "int64"},
    {"uint64", "uint64"},
    {"double", "fp64"},
});

struct Word {
  std::string_view text;
  int column = 1;
};

std::vector<Word> split(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<Word> words;
  for (std::size_t at = line.find_first_not_of(kBlank); at < line.size();
       at = line.find_first_not_of(kBlank, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back({line.substr(at, end - at), static_cast<int>(at) + 1});
    at = end;
  }
  return words;
}

/// Words without the mark of the rank that `mpirun --tag-output` ("[1,0]<stdout>:") and `srun -l`
/// ("0:") put before each line.
void drop_rank_tag(std::vector<Word>& words) {
  if (words.empty()) return;
  Word& first = words.front();
  std::size_t tag = 0;
  if (const auto end = first.text.find(">:"); first.text[0] == '[' && end != first.text.npos) {
    tag = end + 2;
  } else if (first.text.ends_with(':') &&
             parse_count(first.text.substr(0, first.text.size() - 1)).has_value()) {
    tag = first.text.size();
  }
  first.text.remove_prefix(tag);
  first.column += static_cast<int>(tag);
  if (first.text.empty()) words.erase(words.begin());
}

const std::pair<std::string_view, std::string_view>* find_type(std::string_view name) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return t.first == name; });
  return found == kTypes.end() ? nullptr : &*found;
}

/// The collective of the program that a line names ("./build/all_reduce_perf -b 8"), or nothing.
std::string named_collective(std::string_view line) {
  constexpr std::string_view kSuffix = "_perf";
  for (auto end = line.find(kSuffix); end != line.npos; end = line.find(kSuffix, end + 1)) {
    std::size_t start = end;
    while (start > 0 &&
           (line[start - 1] == '_' || (line[start - 1] >= 'a' && line[start - 1] <= 'z')))
      --start;
    std::string name(line.substr(start, end - start));
    if (std::find(collectives().begin(), collectives().end(), name) != collectives().end()) {
      return name;
    }
  }
  return {};
}

/// Columns of one half of the table, as positions among the words of a row.
struct Half {
  std::size_t time = 0, bus = 0, wrong = 0;
};
struct Header {
  std::size_t columns = 0;  ///< 0: there was none yet
  std::size_t type = 0;
  std::vector<Half> halves;  ///< out of place, in place
};

class Reader {
 public:
  Reader(const std::string& path, const ImportOptions& options) : path_(path), options_(options) {}

  ImportedTable read() {
    const std::string text = read_input(path_);
    diagnostics_.add_source(path_, text);
    check_collective();
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      ++line_;
      read_line(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (!seen_header_ && !diagnostics_.has_errors()) {
      throw config::ConfigError(path_ +
                                ": holds no table of nccl-tests (a line '# size count type ...')");
    }
    diagnostics_.throw_if_errors();
    add_note(empty_, "of 0 bytes");
    add_note(wrong_, "with wrong values (#wrong above 0)");
    return std::move(table_);
  }

 private:
  void check_collective() const {
    const auto& known = collectives();
    const std::string& name = options_.collective;
    if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
    const std::string meant = nearest_name(name, known);
    throw config::ConfigError("nccl-tests has no collective '" + name + "'" +
                              (meant.empty() ? "" : "; did you mean '" + meant + "'?"));
  }

  void add_note(int rows, const char* what) {
    if (rows == 0) return;
    table_.notes.push_back(path_ + ": left out " + std::to_string(rows) +
                           (rows == 1 ? " time " : " times ") + what);
  }

  void error(const Word& word, std::string message) {
    diagnostics_.error({path_, line_, word.column}, static_cast<int>(word.text.size()),
                       std::move(message));
  }

  void read_line(std::string_view line) {
    std::vector<Word> words = split(line);
    drop_rank_tag(words);
    if (words.empty()) return;
    const bool comment = words[0].text.starts_with('#');
    if (!comment && words.size() > 2 && parse_count(words[0].text) && parse_count(words[1].text) &&
        find_type(words[2].text) != nullptr) {
      read_row(words);
      return;
    }
    read_version(line);
    // The end of a run names its program once more ("Collective test concluded"); what follows may
    // be another one.
    const bool concluded = line.find("concluded") != line.npos;
    if (const std::string name = named_collective(line); !name.empty() && !concluded) {
      collective_ = name;
    }
    if (comment && words.size() > 2) read_comment(words);
  }

  void read_comment(const std::vector<Word>& words) {
    if (words[1].text == "nThread") {
      ranks_.clear();
      hosts_.clear();
      device_.clear();
      header_ = {};
    } else if (words[1].text == "Rank") {
      read_rank(words);
    } else if (words[1].text == "size" && words[2].text == "count") {
      read_header(words);
    } else if (words[1].text == "Out") {
      collective_.clear();
    }
  }

  /// "# Rank 0 Group 0 Pid 1 on host device 0 [0x07] NVIDIA H100 80GB HBM3"
  void read_rank(const std::vector<Word>& words) {
    const auto rank = parse_count(words[2].text);
    if (!rank) return;
    if (!ranks_.insert(*rank).second) {
      error(words[2], "rank " + std::to_string(*rank) +
                          " is there twice: processes that ran apart (built without MPI=1?), not "
                          "one collective");
    }
    const auto place = [&](std::string_view name) {
      return std::find_if(words.begin(), words.end(),
                          [&](const Word& w) { return w.text == name; });
    };
    const auto on = place("on"), device = place("device");
    if (words.end() - on > 1) hosts_.emplace((on + 1)->text);
    if (*rank != 0 || words.end() - device < 3) return;
    for (auto word = device + 2; word != words.end(); ++word) {
      if (word->text.starts_with('[')) continue;
      device_ += (device_.empty() ? "" : " ") + std::string(word->text);
    }
  }

  /// "# nccl-tests version 2.17 nccl-headers=22703 nccl-library=22703", or "NCCL
  /// version 2.27.3+..." with NCCL_DEBUG=VERSION. The number is 10000 major + 100 minor + patch
  /// (NCCL_VERSION in nccl.h, since 2.9).
  void read_version(std::string_view line) {
    constexpr std::string_view kLibrary = "nccl-library=", kVersion = "NCCL version ";
    const auto after = [line](std::string_view mark) {
      const std::size_t at = line.find(mark);
      return at == line.npos ? ""sv : line.substr(at + mark.size());
    };
    const std::string_view code = after(kLibrary), version = after(kVersion);
    if (const auto number = parse_count(code.substr(0, code.find_first_not_of("0123456789")));
        number && *number >= 10000) {
      version_ = std::to_string(*number / 10000) + "." + std::to_string(*number / 100 % 100) + "." +
                 std::to_string(*number % 100);
    } else if (version.find_first_of("0123456789") == 0) {
      version_ = version.substr(0, version.find_first_not_of("0123456789."));
    }
  }

  void read_header(const std::vector<Word>& words) {
    seen_header_ = true;
    header_ = {};
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string_view name = words[i].text;
      const std::size_t place = i - 1;
      if (name == "type") header_.type = place;
      if (name == "time") header_.halves.push_back({place, 0, 0});
      if (header_.halves.empty()) continue;
      if (name == "busbw") header_.halves.back().bus = place;
      if (name == "#wrong" || name == "error") header_.halves.back().wrong = place;
    }
    header_.columns = words.size() - 1;
    const bool whole = std::all_of(header_.halves.begin(), header_.halves.end(),
                                   [](const Half& h) { return h.bus > 0 && h.wrong > 0; });
    if (header_.type == 0 || header_.halves.empty() || header_.halves.size() > 2 || !whole) {
      error(words[1],
            "a table without the columns type, time, busbw and #wrong (with -C 1 "
            "nccl-tests prints times of the CPU)");
      header_ = {};
    }
    if (ranks_.empty()) {
      error(words[1],
            "there is no line '# Rank ...' before this table, so that the number of "
            "ranks is unknown");
    }
    if (collective_.empty() && options_.collective.empty()) {
      error(words[1], "no line before this table names the program; say --collective NAME");
    }
  }

  void read_row(const std::vector<Word>& words) {
    if (header_.columns == 0) {
      if (!seen_header_) error(words[0], "a row before the header of its table");
      return;  // what is wrong with the header was said there
    }
    if (words.size() < header_.columns) {
      error(words[0], std::to_string(words.size()) + " cells, but there are " +
                          std::to_string(header_.columns) + " columns");
      return;
    }
    for (std::size_t i = 0; i < header_.halves.size(); ++i) add_row(words, i);
  }

  void add_row(const std::vector<Word>& words, std::size_t half) {
    const Half& columns = header_.halves[half];
    const std::int64_t bytes = *parse_count(words[0].text);
    const auto time = parse_real(words[columns.time].text);
    constexpr int kGiga = 9;
    const auto bus = parse_real(words[columns.bus].text, kGiga);
    const auto wrong = parse_real(words[columns.wrong].text);
    if (bytes == 0) {
      ++empty_;
    } else if (!time || *time <= 0) {
      error(words[columns.time], "a time is a finite number above 0");
    } else if (!bus || *bus < 0) {
      error(words[columns.bus], "a bandwidth is a finite number from 0 on");
    } else if (!wrong && words[columns.wrong].text != "N/A") {
      error(words[columns.wrong], "#wrong is a number or N/A");
    } else if (wrong.value_or(0) > 0) {
      ++wrong_;
    } else {
      const std::string system = options_.system.empty() ? device_ : options_.system;
      table_.rows.push_back({system, collective_.empty() ? options_.collective : collective_,
                             std::string(find_type(words[header_.type].text) == nullptr
                                             ? words[header_.type].text
                                             : find_type(words[header_.type].text)->second),
                             static_cast<std::int64_t>(ranks_.size()), bytes, *time,
                             "nccl-tests" + (version_.empty() ? "" : "__nccl_" + version_),
                             static_cast<std::int64_t>(hosts_.size()),
                             half == 0 ? "out_of_place" : "in_place", *bus});
    }
  }

  const std::string& path_;
  const ImportOptions& options_;
  config::Diagnostics diagnostics_;
  int line_ = 0;
  ImportedTable table_{{"system", "collective", "precision", "ranks", "bytes", "latency_us",
                        "source", "nodes", "placement", "bus_bytes_per_s"},
                       {},
                       {}};
  std::string collective_, version_, device_;
  std::set<std::int64_t> ranks_;
  std::set<std::string> hosts_;
  Header header_;
  bool seen_header_ = false;
  int empty_ = 0, wrong_ = 0;
};

ImportedTable import_nccl_tests(const std::string& path, const ImportOptions& options) {
  return Reader(path, options).read();
}

const ImporterRegistry::Register registered_nccl_tests(
    "nccl-tests", "printed tables of all_reduce_perf and its sisters", import_nccl_tests);

}  // namespace

}  // namespace orrery
