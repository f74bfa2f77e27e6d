// SPDX-License-Identifier: Apache-2.0
// The SQLite file of `nsys export --type sqlite`. Tables are made only for what was recorded, and
// their columns change with the version (Nsight Systems, "Exporter SQLite schema"), so that both
// are checked before they are read. Times are in ns, names are ids of StringIds, and copyKind is
// CUpti_ActivityMemcpyKind of CUPTI.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "sim/config/diagnostics.h"
#include "sim/store/sqlite.h"
#include "validation/importers/importer.h"

namespace orrery {
namespace {

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";

constexpr std::array<const char*, 11> kCopyKinds = {
    "unknown",          "host_to_device", "device_to_host",  "host_to_array",
    "array_to_host",    "array_to_array", "array_to_device", "device_to_array",
    "device_to_device", "host_to_host",   "peer_to_peer"};

/// Activities of one name.
struct Activity {
  std::vector<std::int64_t> durations_ns;
  std::int64_t first_start_ns = 0;
  std::string grid, block;  ///< grid and block of the first activity
  double bytes = 0;         ///< a sum that no file can make overflow
};

std::vector<std::string> columns_of(const Database& database, const char* table) {
  Statement statement = database.prepare("SELECT name FROM pragma_table_info(?)");
  statement.bind(1, std::string_view(table));
  std::vector<std::string> columns;
  while (statement.step()) columns.push_back(statement.text(0));
  return columns;
}

bool has(const std::vector<std::string>& columns, const char* name) {
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

/// @throws config::ConfigError that names what of the table is missing
void require(const std::string& path, const char* table, const std::vector<std::string>& columns,
             const std::vector<const char*>& names) {
  if (columns.empty()) {
    throw config::ConfigError(path + ": has no table " + table +
                              "; is it made by `nsys export --type sqlite` of a profile with "
                              "--trace=cuda (and --cuda-graph-trace=node) that ran a kernel?");
  }
  std::string missing;
  for (const char* name : names) {
    if (!has(columns, name)) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (!missing.empty()) {
    throw config::ConfigError(path + ": its table " + table + " has no column " + missing +
                              "; this version of nsys is not known");
  }
}

std::string dimensions(const Statement& statement, int column) {
  return std::to_string(statement.integer(column)) + "x" +
         std::to_string(statement.integer(column + 1)) + "x" +
         std::to_string(statement.integer(column + 2));
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), database_(path, Database::Mode::kRead) {}

  ImportedTable read() {
    read_kernels();
    read_copies();
    std::stable_sort(table_.rows.begin(), table_.rows.end(), [](const auto& a, const auto& b) {
      return std::get<double>(a[kTotal]) > std::get<double>(b[kTotal]);
    });
    if (unfinished_ > 0) {
      table_.notes.push_back(path_ + ": left out " + std::to_string(unfinished_) +
                             " activities without a start or an end");
    }
    return std::move(table_);
  }

 private:
  static constexpr std::size_t kTotal = 3;  // position of total_ns

  void read_kernels() {
    const std::vector<std::string> columns = columns_of(database_, kKernels);
    require(path_, kKernels, columns, {"start", "end", "demangledName"});
    require(path_, "StringIds", columns_of(database_, "StringIds"), {"id", "value"});
    const bool shaped = has(columns, "gridX") && has(columns, "gridY") && has(columns, "gridZ") &&
                        has(columns, "blockX") && has(columns, "blockY") && has(columns, "blockZ");
    Statement statement = database_.prepare(
        std::string("SELECT start, \"end\", demangledName") +
        (shaped ? ", gridX, gridY, gridZ, blockX, blockY, blockZ" : "") + " FROM " + kKernels);
    std::map<std::int64_t, Activity> kernels;  // by id of the name
    while (statement.step()) {
      const auto [kernel, is_first] = add(statement, kernels);
      if (!is_first || !shaped) continue;
      constexpr int kGrid = 3, kBlock = 6;
      kernel->grid = dimensions(statement, kGrid);
      kernel->block = dimensions(statement, kBlock);
    }
    for (auto& [id, kernel] : kernels) add_row("kernel", name_of(id), kernel);
  }

  void read_copies() {
    const std::vector<std::string> columns = columns_of(database_, kCopies);
    if (columns.empty()) return;  // nothing was copied
    require(path_, kCopies, columns, {"start", "end", "copyKind", "bytes"});
    Statement statement =
        database_.prepare(std::string("SELECT start, \"end\", copyKind, bytes FROM ") + kCopies);
    std::map<std::int64_t, Activity> copies;  // by kind
    while (statement.step()) {
      Activity* copy = add(statement, copies).first;
      if (copy != nullptr) copy->bytes += static_cast<double>(statement.integer(3));
    }
    for (auto& [kind, copy] : copies) {
      const bool known = kind >= 0 && kind < static_cast<std::int64_t>(kCopyKinds.size());
      add_row("memcpy",
              known ? kCopyKinds[static_cast<std::size_t>(kind)] : "kind_" + std::to_string(kind),
              copy);
    }
  }

  /// Counts the activity of a row. @return its group (none for a row without start or end), and
  /// whether the row is the first of it so far
  std::pair<Activity*, bool> add(const Statement& row, std::map<std::int64_t, Activity>& groups) {
    const std::int64_t start = row.integer(0), end = row.integer(1);
    if (row.is_null(0) || row.is_null(1) || start < 0 || end < start) {
      ++unfinished_;
      return {nullptr, false};
    }
    Activity& group = groups[row.integer(2)];
    const bool is_first = group.durations_ns.empty() || start < group.first_start_ns;
    group.durations_ns.push_back(end - start);
    if (is_first) group.first_start_ns = start;
    return {&group, is_first};
  }

  std::string name_of(std::int64_t id) const {
    Statement statement = database_.prepare("SELECT value FROM StringIds WHERE id = ?");
    statement.bind(1, id);
    if (statement.step()) return statement.text(0);
    throw config::ConfigError(path_ + ": StringIds has no name " + std::to_string(id) +
                              ", which a row of " + kKernels + " has");
  }

  void add_row(const char* kind, const std::string& name, Activity& activity) {
    std::vector<std::int64_t>& times = activity.durations_ns;
    std::sort(times.begin(), times.end());
    double total = 0;
    for (const std::int64_t time : times) total += static_cast<double>(time);
    const std::size_t half = times.size() / 2;
    const auto middle = static_cast<double>(times[half]);
    const double median =
        times.size() % 2 == 1 ? middle : (static_cast<double>(times[half - 1]) + middle) / 2;
    const bool is_copy = std::string_view(kind) == "memcpy";
    const auto shape = [](const std::string& text) {
      return text.empty() ? ImportedCell() : ImportedCell(text);
    };
    table_.rows.push_back({kind, name, static_cast<std::int64_t>(times.size()), total, median,
                           times.front(), times.back(),
                           is_copy ? ImportedCell(activity.bytes) : ImportedCell(),
                           shape(activity.grid), shape(activity.block)});
  }

  const std::string& path_;
  Database database_;
  std::int64_t unfinished_ = 0;
  ImportedTable table_{{"activity", "name", "calls", "total_ns", "median_ns", "min_ns", "max_ns",
                        "bytes", "grid", "block"},
                       {},
                       {}};
};

ImportedTable import_nsys(const std::string& path, const ImportOptions& /*options*/) {
  if (!std::filesystem::is_regular_file(path)) {
    throw config::ConfigError(path + ": cannot be read: there is no such file");
  }
  try {
    return Reader(path).read();
  } catch (const StoreError& error) {
    const bool report = error.fault() == StoreFault::kForeign;
    throw config::ConfigError(
        std::string(error.what()) +
        (report ? "; a report (.nsys-rep) becomes one by `nsys export --type sqlite`" : ""));
  }
}

const ImporterRegistry::Register registered_nsys(
    "nsys", "kernels and copies of `nsys export --type sqlite`", import_nsys);

}  // namespace

}  // namespace orrery
