// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/nsys_stats.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "sim/config/csv.h"
#include "validation/importers/gpu_activities.h"
#include "validation/importers/log_text.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

/// What a header line begins.
enum class StatsTable { kNone, kTrace, kSum, kOther };

StatsTable table_of(std::string_view line) {
  const auto has = [line](std::string_view text) { return line.find(text) != line.npos; };
  if (has("Start (") && has("Duration (") && has("CorrId") && has("Name")) {
    return StatsTable::kTrace;
  }
  if (!has("Time (%)") && !has("Time(%)") && !has("Total (MB)")) return StatsTable::kNone;
  if (line.find(',') == line.npos) return StatsTable::kNone;
  const bool is_sum =
      has("Total Time (") && (has("Instances") || has("Operations") || has("Count"));
  const bool of_host = has("Num Calls") || has("Range") || has("Style");
  return is_sum && !of_host && (has(",Name") || has(",Operation") || has("\"Name\""))
             ? StatsTable::kSum
             : StatsTable::kOther;
}

/// Nanoseconds of the unit in a column name: "Total Time (us)"; ns where there is none.
int exponent_in(std::string_view column) {
  if (column.ends_with("(us)")) return 3;
  if (column.ends_with("(ms)")) return 6;
  if (column.ends_with("(s)") || column.ends_with("(sec)")) return 9;
  return 0;
}

/// "  132    2    1" as "132x2x1"
std::string spaced_shape(std::string_view text) {
  std::string shape;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    if (!shape.empty() && (text[i - 1] < '0' || text[i - 1] > '9')) shape += 'x';
    shape += text[i];
  }
  return shape;
}

/// "NVIDIA H100 80GB HBM3 (1)" as "1"
std::string device_number(std::string_view text) {
  const std::size_t open = text.rfind('(');
  if (open == text.npos || !text.ends_with(')')) return std::string(text);
  const std::string_view number = text.substr(open + 1, text.size() - open - 2);
  return parse_count(number) ? std::string(number) : std::string(text);
}

ActivityGroup group_of(std::string_view name) {
  if (const auto direction = copy_direction(name); direction && name.starts_with("[CUDA ")) {
    return {"memcpy", *direction};
  }
  if (name.starts_with("[CUDA memset")) return {"memset", "memset"};
  return {"kernel", std::string(name)};
}

class NsysStatsReader {
 public:
  NsysStatsReader(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  ImportedTable read() {
    std::string section;
    StatsTable kind = StatsTable::kNone;
    std::string before;  // an empty line for each line above, so that places stay right
    bool announced = false;
    for (const std::string_view line : lines_of(text_)) {
      StatsTable begun = table_of(line);
      const bool is_blank = line.find_first_not_of(" \t\r") == line.npos;
      const bool announces = line.starts_with("Processing [");
      const bool ends = is_blank || announces || line.starts_with("** ");
      if (announced && !ends && begun == StatsTable::kNone && line.find(',') != line.npos) {
        begun = StatsTable::kOther;  // a report that is not known
      }
      announced = announces || (announced && is_blank);
      if (begun != StatsTable::kNone || ends) {
        read_section(kind, before, section);
        before.append(static_cast<std::size_t>(std::count(section.begin(), section.end(), '\n')),
                      '\n');
        section.clear();
        kind = begun;
      }
      section.append(kind == StatsTable::kNone ? std::string_view() : line).append(1, '\n');
    }
    read_section(kind, before, section);
    ImportedTable table = finest();
    if (other_tables_ > 0)
      table.notes.push_back(fmt::format("{}: left out {} tables that do not have times of GPUs",
                                        path_, other_tables_));
    if (table.rows.empty())
      throw config::ConfigError(path_ + ": no table of nsys stats has activities of GPUs");
    return table;
  }

 private:
  /// How much of an activity a table tells: all, by shape, by name, by name among others.
  static constexpr std::size_t kDetails = 4;

  /// Reports of one profile tell the same activities: of each kind, those of the finest one.
  ImportedTable finest() {
    ImportedTable all;
    std::size_t coarser = 0;
    for (const bool kernels : {true, false}) {
      bool found = false;
      for (GpuActivities& activities : kernels ? kernels_ : others_) {
        ImportedTable table = activities.table(path_);
        all.columns = table.columns;
        if (found) {
          coarser += table.rows.size();
          continue;
        }
        found = !table.rows.empty();
        std::move(table.rows.begin(), table.rows.end(), std::back_inserter(all.rows));
        std::move(table.notes.begin(), table.notes.end(), std::back_inserter(all.notes));
      }
    }
    if (coarser > 0)
      all.notes.push_back(fmt::format("{}: left out {} sums of activities that a finer table tells",
                                      path_, coarser));
    sort_activities(all);
    return all;
  }

  GpuActivities& activities_of(const ActivityGroup& group, std::size_t detail) {
    return (group.activity == "kernel" ? kernels_ : others_)[detail];
  }

  void read_section(StatsTable kind, const std::string& before, const std::string& section) {
    if (kind == StatsTable::kOther) ++other_tables_;
    constexpr int kMostTables = 1000;
    if (kind != StatsTable::kNone && ++tables_ > kMostTables)
      throw config::ConfigError(
          fmt::format("{}: has more than {} tables of nsys stats", path_, kMostTables));
    if (kind != StatsTable::kTrace && kind != StatsTable::kSum) return;
    config::CsvReader csv(path_, before + section);
    if (kind == StatsTable::kTrace) {
      read_trace(csv);
    } else {
      read_sum(csv);
    }
    csv.throw_if_errors();
  }

  /// The column that begins so; the first without a name is none.
  static std::optional<std::size_t> column(const config::CsvReader& csv, std::string_view start) {
    const auto& columns = csv.columns();
    const auto found = std::find_if(columns.begin(), columns.end(), [start](const auto& name) {
      return std::string_view(name).starts_with(start);
    });
    if (found == columns.end()) return std::nullopt;
    return static_cast<std::size_t>(found - columns.begin());
  }

  static std::optional<double> time(config::CsvReader& csv, std::optional<std::size_t> place) {
    return optional_time(csv, place, place ? exponent_in(csv.columns()[*place]) : 0);
  }

  void read_sum(config::CsvReader& csv) {
    auto name = column(csv, "Name");
    if (!name) name = column(csv, "Operation");
    auto calls = column(csv, "Instances");
    if (!calls) calls = column(csv, "Count");
    if (!calls) calls = column(csv, "Operations");
    const auto total = column(csv, "Total Time");
    if (!name || !calls || !total)
      return csv.error(0, "a sum has a name, a count and a total time");
    auto median = column(csv, "Med"), least = column(csv, "Min"), most = column(csv, "Max");
    const auto grid = column(csv, "GridXYZ"), block = column(csv, "BlockXYZ");
    const std::size_t detail = grid ? 1 : column(csv, "Category") ? 3 : 2;
    while (csv.next()) {
      ActivityGroup group = group_of(csv.cell(*name));
      if (grid) group.grid = spaced_shape(csv.cell(*grid));
      if (block) group.block = spaced_shape(csv.cell(*block));
      const auto number = parse_count(csv.cell(*calls));
      const auto sum = time(csv, total);
      if (!number) csv.error(*calls, "a count is a whole number from 0 on");
      if (!number || !sum) continue;
      activities_of(group, detail)
          .add_sum(group, ActivityTimes{*number, *sum, time(csv, median), time(csv, least),
                                        time(csv, most), std::nullopt});
    }
  }

  void read_trace(config::CsvReader& csv) {
    const auto name = column(csv, "Name"), duration = column(csv, "Duration"),
               device = column(csv, "Device"), bytes = column(csv, "Bytes (MB)");
    if (!name || !duration) return csv.error(0, "a trace has the columns Duration and Name");
    while (csv.next()) {
      ActivityGroup group = group_of(csv.cell(*name));
      if (device) group.device = device_number(csv.cell(*device));
      group.grid = shape(csv, {"GrdX", "GrdY", "GrdZ"});
      group.block = shape(csv, {"BlkX", "BlkY", "BlkZ"});
      const auto length = time(csv, duration);
      if (!length) {
        activities_of(group, 0).add_unfinished();
        continue;
      }
      constexpr double kMega = 1e6;
      const auto moved =
          bytes && group.activity != "kernel" ? parse_real(csv.cell(*bytes)) : std::nullopt;
      activities_of(group, 0).add(group, {std::llround(std::min(*length, 9e18))},
                                  moved ? std::optional(*moved * kMega) : std::nullopt);
    }
  }

  static std::string shape(const config::CsvReader& csv,
                           std::initializer_list<std::string_view> names) {
    std::string text;
    for (const std::string_view name : names) {
      const auto place = csv.find(name);
      const auto count = place ? parse_count(csv.cell(*place)) : std::nullopt;
      if (!count) return {};
      text += (text.empty() ? "" : "x");
      text += std::to_string(*count);
    }
    return text;
  }

  const std::string& path_;
  const std::string& text_;
  std::array<GpuActivities, kDetails> kernels_, others_;  // the finest first
  int other_tables_ = 0, tables_ = 0;
};

}  // namespace

bool is_nsys_stats(const std::string& text) {
  const std::vector<std::string_view> lines = lines_of(text);
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    const StatsTable kind = table_of(line);
    return kind == StatsTable::kTrace || kind == StatsTable::kSum;
  });
}

ImportedTable read_nsys_stats(const std::string& path, const std::string& text) {
  return NsysStatsReader(path, text).read();
}

}  // namespace orrery
