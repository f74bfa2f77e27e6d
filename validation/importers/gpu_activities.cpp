// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/gpu_activities.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "sim/config/byte_source.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

constexpr std::size_t kTotalColumn = 3;  // position of total_ns

ActivityTimes times_of(std::vector<std::int64_t>& durations, std::optional<double> bytes) {
  std::sort(durations.begin(), durations.end());
  ActivityTimes times;
  times.calls = static_cast<std::int64_t>(durations.size());
  for (const std::int64_t duration : durations) times.total_ns += static_cast<double>(duration);
  const std::size_t half = durations.size() / 2;
  const auto middle = static_cast<double>(durations[half]);
  times.median_ns =
      durations.size() % 2 == 1 ? middle : (static_cast<double>(durations[half - 1]) + middle) / 2;
  times.min_ns = static_cast<double>(durations.front());
  times.max_ns = static_cast<double>(durations.back());
  times.bytes = bytes;
  return times;
}

}  // namespace

void GpuActivities::add(const ActivityGroup& group, const std::vector<std::int64_t>& durations_ns,
                        std::optional<double> bytes) {
  if (durations_ns.empty()) return;
  Times& times = groups_[group];
  times.durations_ns.insert(times.durations_ns.end(), durations_ns.begin(), durations_ns.end());
  if (bytes) times.bytes = times.bytes.value_or(0) + *bytes;
}

void GpuActivities::add_sum(const ActivityGroup& group, const ActivityTimes& times) {
  summed_.emplace_back(group, times);
}

ImportedTable GpuActivities::table(const std::string& path) {
  for (auto& [group, times] : groups_)
    summed_.emplace_back(group, times_of(times.durations_ns, times.bytes));
  groups_.clear();
  ImportedTable table{{"activity", "name", "calls", "total_ns", "median_ns", "min_ns", "max_ns",
                       "bytes", "grid", "block", "device"}};
  for (const auto& [group, times] : summed_)
    table.rows.push_back({group.activity, group.name, times.calls, times.total_ns,
                          cell_of(times.median_ns), cell_of(times.min_ns), cell_of(times.max_ns),
                          cell_of(times.bytes), cell_of(group.grid), cell_of(group.block),
                          cell_of(group.device)});
  sort_activities(table);
  if (unfinished_ > 0)
    table.notes.push_back(
        fmt::format("{}: left out {} activities without a start or an end", path, unfinished_));
  return table;
}

void sort_activities(ImportedTable& table) {
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<double>(a[kTotalColumn]) > std::get<double>(b[kTotalColumn]);
  });
}

std::optional<std::string> copy_direction(std::string_view name) {
  std::string words;  // small letters, underscores between
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool is_capital = c >= 'A' && c <= 'Z';
    const bool starts_word = is_capital && i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z';
    if (starts_word || c == '-' || c == ' ') words += '_';
    if (is_capital) words += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || c == '_') words += c;
  }
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {{"hto_d", "host_to_device"},
                                                                      {"dto_h", "device_to_host"},
                                                                      {"dto_d", "device_to_device"},
                                                                      {"hto_h", "host_to_host"},
                                                                      {"pto_p", "peer_to_peer"}};
  if (words.find("copy") == words.npos && words.find("memcpy") == words.npos) return std::nullopt;
  for (const auto& [mark, direction] : kShort)
    if (words.ends_with(mark)) return std::string(direction);
  for (const char* from : {"host", "device", "peer", "array"}) {
    for (const char* to : {"host", "device", "peer", "array"}) {
      const std::string direction = fmt::format("{}_to_{}", from, to);
      if (words.ends_with(direction)) return direction;
    }
  }
  return std::nullopt;
}

std::string shape_text(std::int64_t x, std::int64_t y, std::int64_t z) {
  return fmt::format("{}x{}x{}", x, y, z);
}

bool holds_database(const std::string& path) {
  if (!std::filesystem::is_regular_file(path))
    throw config::ConfigError(path + ": cannot be read: there is no such file");
  constexpr std::string_view kBegin = "SQLite format 3";
  return ByteSource(path).peek(kBegin.size()) == kBegin;
}

std::optional<double> optional_time(config::CsvReader& csv, std::optional<std::size_t> place,
                                    int exponent) {
  if (!place || csv.cell(*place).empty()) return std::nullopt;
  const auto value = parse_real(csv.cell(*place), exponent);
  if (value && *value >= 0) return value;
  csv.error(*place, "a time is a finite number from 0 on");
  return std::nullopt;
}

}  // namespace orrery
