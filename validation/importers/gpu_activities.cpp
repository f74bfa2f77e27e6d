// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/gpu_activities.h"

#include <algorithm>

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

ImportedCell real_cell(const std::optional<double>& value) {
  return value ? ImportedCell(*value) : ImportedCell();
}

ImportedCell text_cell(const std::string& text) {
  return text.empty() ? ImportedCell() : ImportedCell(text);
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
  for (auto& [group, times] : groups_) {
    summed_.emplace_back(group, times_of(times.durations_ns, times.bytes));
  }
  groups_.clear();
  ImportedTable table{{"activity", "name", "calls", "total_ns", "median_ns", "min_ns", "max_ns",
                       "bytes", "grid", "block", "device"},
                      {},
                      {}};
  for (const auto& [group, times] : summed_) {
    table.rows.push_back({group.activity, group.name, times.calls, times.total_ns,
                          real_cell(times.median_ns), real_cell(times.min_ns),
                          real_cell(times.max_ns), real_cell(times.bytes), text_cell(group.grid),
                          text_cell(group.block), text_cell(group.device)});
  }
  sort_activities(table);
  if (unfinished_ > 0) {
    table.notes.push_back(path + ": left out " + std::to_string(unfinished_) +
                          " activities without a start or an end");
  }
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
  for (const auto& [mark, direction] : kShort) {
    if (words.ends_with(mark)) return std::string(direction);
  }
  for (const std::string_view from : {"host", "device", "peer", "array"}) {
    for (const std::string_view to : {"host", "device", "peer", "array"}) {
      std::string direction(from);
      direction.append("_to_").append(to);
      if (words.ends_with(direction)) return direction;
    }
  }
  return std::nullopt;
}

std::string shape_text(std::int64_t x, std::int64_t y, std::int64_t z) {
  return std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z);
}

}  // namespace orrery
