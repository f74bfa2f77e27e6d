// SPDX-License-Identifier: Apache-2.0
// Kernel launches of `ncu --csv`: the page "details" has a line for each metric of a launch, the
// page "raw" a column for each metric and the units as its second row (Nsight Compute CLI, "Console
// output"). Values have thousands separators; prefixes of units are decimal. Lines of metrics end
// before the columns of rules, which they do not have.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "sim/config/csv.h"
#include "validation/importers/importer.h"
#include "validation/importers/log_text.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

enum class Measure { kTime, kBytes, kRate };

struct Unit {
  std::string_view name;
  Measure measure;
  int exponent;  ///< power of ten that turns it into ns, bytes, Hz
};
constexpr auto kUnits = std::to_array<Unit>({
    {"nsecond", Measure::kTime, 0},
    {"ns", Measure::kTime, 0},
    {"usecond", Measure::kTime, 3},
    {"us", Measure::kTime, 3},
    {"msecond", Measure::kTime, 6},
    {"ms", Measure::kTime, 6},
    {"second", Measure::kTime, 9},
    {"s", Measure::kTime, 9},
    {"byte", Measure::kBytes, 0},
    {"B", Measure::kBytes, 0},
    {"Kbyte", Measure::kBytes, 3},
    {"KB", Measure::kBytes, 3},
    {"Mbyte", Measure::kBytes, 6},
    {"MB", Measure::kBytes, 6},
    {"Gbyte", Measure::kBytes, 9},
    {"GB", Measure::kBytes, 9},
    {"Tbyte", Measure::kBytes, 12},
    {"TB", Measure::kBytes, 12},
    {"hz", Measure::kRate, 0},
    {"Hz", Measure::kRate, 0},
    {"Khz", Measure::kRate, 3},
    {"KHz", Measure::kRate, 3},
    {"Mhz", Measure::kRate, 6},
    {"MHz", Measure::kRate, 6},
    {"Ghz", Measure::kRate, 9},
    {"GHz", Measure::kRate, 9},
    {"cycle/second", Measure::kRate, 0},
    {"cycle/msecond", Measure::kRate, 3},
    {"cycle/usecond", Measure::kRate, 6},
    {"cycle/nsecond", Measure::kRate, 9},
    {"cycle/s", Measure::kRate, 0},
    {"cycle/ms", Measure::kRate, 3},
    {"cycle/us", Measure::kRate, 6},
    {"cycle/ns", Measure::kRate, 9},
});

struct Launch {
  std::string id, name, grid, block;
  std::optional<double> duration_ns{}, dram_read{}, dram_written{}, sm_clock_hz{};
};

struct Metric {
  std::string_view name;  ///< name of the metric, or its label on the page "details"
  Measure measure;
  std::optional<double> Launch::*member;
};
constexpr auto kMetrics = std::to_array<Metric>({
    {"gpu__time_duration.sum", Measure::kTime, &Launch::duration_ns},
    {"Duration", Measure::kTime, &Launch::duration_ns},
    {"dram__bytes_read.sum", Measure::kBytes, &Launch::dram_read},
    {"dram__bytes_write.sum", Measure::kBytes, &Launch::dram_written},
    {"SM Frequency", Measure::kRate, &Launch::sm_clock_hz},
    {"sm__cycles_elapsed.avg.per_second", Measure::kRate, &Launch::sm_clock_hz},
    {"smsp__cycles_elapsed.avg.per_second", Measure::kRate, &Launch::sm_clock_hz},
});

const Metric* find_metric_of_ncu(std::string_view name) {
  const auto found = std::find_if(kMetrics.begin(), kMetrics.end(),
                                  [&](const Metric& m) { return m.name == name; });
  return found == kMetrics.end() ? nullptr : &*found;
}

/// Whether a line begins a table: a column ID and one of the kernel, with quotes or, as other
/// programs write CSV again, without.
bool is_ncu_header(std::string_view line) {
  const bool has_id = line.starts_with("\"ID\"") || line.starts_with("ID,") ||
                      line.find(",\"ID\",") != line.npos || line.find(",ID,") != line.npos;
  return has_id && line.find("Kernel Name") != line.npos;
}

/// Only the CSV: lines before its header are of ncu ("==PROF== ...") and of the program, later ones
/// of ncu. They are emptied, so that the others keep their line numbers.
std::string csv_part(const std::string& text, const std::string& path) {
  std::string csv;
  bool in_table = false;
  for (const std::string_view line : lines_of(text)) {
    in_table = in_table || is_ncu_header(line);
    if (in_table && !line.starts_with("==")) csv += line;
    csv += '\n';
  }
  if (!in_table) {
    throw config::ConfigError(path +
                              ": has no line with the columns \"ID\" and \"Kernel "
                              "Name\"; print it by `ncu --csv` without --print-summary");
  }
  return csv;
}

/// "(132, 1, 1)" as "132x1x1".
std::string shape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ',') out += 'x';
    if (c >= '0' && c <= '9') out += c;
  }
  return out;
}

class NcuReader {
 public:
  /// @param scanning only shows the marks all numbers, and reads none
  NcuReader(const std::string& path, std::string csv, NumberMarks& marks, bool scanning)
      : csv_(path, std::move(csv), config::CsvRecords::kMayEndEarly),
        marks_(marks),
        scanning_(scanning) {
    if (csv_.find("Metric Name")) {
      read_details();
    } else {
      read_raw();
    }
  }

  ImportedTable read() {
    csv_.throw_if_errors();
    if (!found_) {
      throw config::ConfigError(
          csv_.name() +
          ": no launch has a metric that is read; collect them by `ncu --metrics "
          "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
          "sm__cycles_elapsed.avg.per_second`");
    }
    return table();
  }

 private:
  std::size_t require(const char* column) {
    const auto place = csv_.find(column);
    if (!place) {
      csv_.error(0, std::string("there is no column '") + column + "'");
      csv_.throw_if_errors();
    }
    return *place;
  }
  std::string optional_cell(const char* column) const {
    const auto place = csv_.find(column);
    return place ? std::string(csv_.cell(*place)) : std::string();
  }

  void begin_launch(std::size_t id, std::size_t kernel) {
    launches_.push_back({std::string(csv_.cell(id)), std::string(csv_.cell(kernel)),
                         shape(optional_cell("Grid Size")), shape(optional_cell("Block Size"))});
  }

  void read_details() {
    const std::size_t id = require("ID"), kernel = require("Kernel Name"),
                      name = require("Metric Name"), unit = require("Metric Unit"),
                      value = require("Metric Value");
    std::map<std::pair<std::string, std::string>, std::size_t> known;  // by process and id
    while (csv_.next()) {
      const auto [launch, is_new] = known.try_emplace(
          {optional_cell("Process ID"), std::string(csv_.cell(id))}, launches_.size());
      if (is_new) begin_launch(id, kernel);
      const Metric* metric = find_metric_of_ncu(csv_.cell(name));
      if (metric == nullptr || !is_there(value)) {
        check_locale(csv_.cell(unit), value);
        continue;
      }
      if (const auto exponent = exponent_of(unit, *metric))
        set(launches_[launch->second], *metric, value, *exponent);
    }
  }

  void read_raw() {
    const std::size_t id = require("ID"), kernel = require("Kernel Name");
    if (!csv_.next()) return;
    if (!csv_.cell(id).empty()) {
      csv_.error(id, "the second line of the page 'raw' has the units, and no ID");
      return;
    }
    struct Column {
      std::string unit;
      const Metric* metric;  ///< null: one that is not read
      int exponent;
    };
    std::vector<Column> columns;
    for (std::size_t i = 0; i < csv_.columns().size(); ++i) {
      const Metric* metric = find_metric_of_ncu(csv_.columns()[i]);
      const int exponent = metric == nullptr ? 0 : exponent_of(i, *metric).value_or(0);
      columns.push_back({std::string(csv_.cell(i)), metric, exponent});
    }
    while (csv_.next()) {
      begin_launch(id, kernel);
      for (std::size_t i = 0; i < columns.size(); ++i) check_locale(columns[i].unit, i);
      for (std::size_t i = 0; i < columns.size(); ++i)
        if (columns[i].metric != nullptr && is_there(i))
          set(launches_.back(), *columns[i].metric, i, columns[i].exponent);
    }
  }

  /// The power of ten of the unit that a cell has; nothing, and an error, for a unit that the
  /// metric does not have.
  std::optional<int> exponent_of(std::size_t cell, const Metric& metric) {
    const std::string_view unit = csv_.cell(cell);
    const auto found = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& known) {
      return known.name == unit && known.measure == metric.measure;
    });
    if (found != kUnits.end()) return found->exponent;
    csv_.error(cell, fmt::format("'{}' is not a known unit of {}", unit, metric.name));
    return std::nullopt;
  }

  /// Chips do not have every counter.
  bool is_there(std::size_t cell) const {
    const std::string_view text = csv_.cell(cell);
    return !text.empty() && text != "n/a" && text != "nan" && !text.starts_with("(!)");
  }

  std::optional<double> number(std::size_t cell, int exponent) {
    const std::string text(csv_.cell(cell));
    if (scanning_) {
      marks_.observe(text);
      return std::nullopt;
    }
    std::string plain;
    const NumberMarks::Reading reading = marks_.read(text, plain);
    if (reading == NumberMarks::Reading::kAmbiguous) {
      csv_.error(cell, fmt::format("'{}' may have a decimal mark or part thousands, and no other "
                                   "number of the file tells which: say --decimal-mark point or "
                                   "comma, or run ncu with LC_ALL=C and further metrics",
                                   text));
      return std::nullopt;
    }
    const auto value =
        reading == NumberMarks::Reading::kNumber ? parse_real(plain, exponent) : std::nullopt;
    if (value && *value >= 0) return value;
    csv_.error(cell, fmt::format("'{}' is not a number from 0 on, or not with the decimal mark of "
                                 "the others; run ncu with LC_ALL=C, or say --decimal-mark point "
                                 "or comma",
                                 text));
    return std::nullopt;
  }

  /// "117.344" is a thousandfold in a locale that parts thousands by points. That shows in other
  /// metrics of the same file, so that all with a unit are looked at, where they are numbers.
  void check_locale(std::string_view unit, std::size_t cell) {
    if (scanning_ && !unit.empty()) marks_.observe(csv_.cell(cell));
  }

  void set(Launch& launch, const Metric& metric, std::size_t cell, int exponent) {
    const auto value = number(cell, exponent);
    if (!value) return;
    launch.*metric.member = *value;
    found_ = true;
  }

  ImportedTable table() const {
    ImportedTable table{{"launch", "name", "duration_ns", "dram_read_bytes", "dram_written_bytes",
                         "sm_clock_hz", "grid", "block"}};
    for (const Launch& launch : launches_)
      table.rows.push_back({launch.id, launch.name, cell_of(launch.duration_ns),
                            cell_of(launch.dram_read), cell_of(launch.dram_written),
                            cell_of(launch.sm_clock_hz), cell_of(launch.grid),
                            cell_of(launch.block)});
    return table;
  }

  config::CsvReader csv_;
  NumberMarks& marks_;
  bool scanning_;
  std::vector<Launch> launches_;
  bool found_ = false;
};

ImportedTable import_ncu(const std::string& path, const ImportOptions& options) {
  NumberMarks marks(options.decimal_mark);
  const std::string csv = csv_part(read_log(path), path);
  const NcuReader scan(path, csv, marks, true);  // shows them all numbers
  return NcuReader(path, csv, marks, false).read();
}

const ImporterRegistry::Register registered_ncu(
    "ncu", "kernel launches of `ncu --csv`, page details or raw", import_ncu);

}  // namespace

}  // namespace orrery
