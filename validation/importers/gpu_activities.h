// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/csv.h"
#include "validation/importers/importer.h"

namespace orrery {

/// Which activities of a profile are one row: what, of which name, where, in which shape.
struct ActivityGroup {
  std::string activity;         ///< kernel, memcpy, memset, graph
  std::string name;             ///< name of the kernel, or direction of the copy
  std::string device{};         ///< number or name; empty where the profile does not tell
  std::string grid{}, block{};  ///< "132x1x1": blocks of the grid, threads of a block
  auto operator<=>(const ActivityGroup&) const = default;
};

/// Times of a group as a profiler sums them up.
struct ActivityTimes {
  std::int64_t calls = 0;
  double total_ns = 0;
  std::optional<double> median_ns{}, min_ns{}, max_ns{};  ///< nothing: not told
  std::optional<double> bytes{};                          ///< moved by all
};

/// Activities of GPUs in a profile, as a table of groups, the longest total first.
class GpuActivities {
 public:
  /// Adds activities of a group.
  /// @param bytes that they moved together; nothing: not told
  void add(const ActivityGroup& group, const std::vector<std::int64_t>& durations_ns,
           std::optional<double> bytes = {});
  /// Adds a group that the file has summed up.
  void add_sum(const ActivityGroup& group, const ActivityTimes& times);
  /// Counts an activity that has no start or no end, and is left out.
  void add_unfinished() { ++unfinished_; }
  bool empty() const { return groups_.empty() && summed_.empty() && unfinished_ == 0; }

  /// @param path what notes call the file
  ImportedTable table(const std::string& path);

 private:
  struct Times {
    std::vector<std::int64_t> durations_ns;
    std::optional<double> bytes;  ///< a sum that no file can make overflow
  };
  std::map<ActivityGroup, Times> groups_;
  std::vector<std::pair<ActivityGroup, ActivityTimes>> summed_;
  std::int64_t unfinished_ = 0;
};

/// Sorts rows of such tables: the longest total first, equal ones as they stand.
void sort_activities(ImportedTable& table);

/// The direction of a copy in our words, "host_to_device", from those of profilers: "[CUDA memcpy
/// Host-to-Device]", "[CUDA memcpy HtoD]", "MEMORY_COPY_HOST_TO_DEVICE", "CopyHostToDevice".
/// Nothing for what is no copy.
std::optional<std::string> copy_direction(std::string_view name);

/// Sizes of a grid or block as text: "132x2x1".
std::string shape_text(std::int64_t x, std::int64_t y, std::int64_t z);

/// Whether a file is a database of SQLite. @throws config::ConfigError where it cannot be read
bool holds_database(const std::string& path);

/// A time of a table's cell in ns; empty cells, and columns that are not there, have none. What is
/// no time becomes an error of the reader.
/// @param exponent power of ten that turns the cell into ns
std::optional<double> optional_time(config::CsvReader& csv, std::optional<std::size_t> place,
                                    int exponent = 0);

}  // namespace orrery
