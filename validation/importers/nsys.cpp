// SPDX-License-Identifier: Apache-2.0
// The SQLite file of `nsys export --type sqlite`, or what `nsys stats` prints of it. Tables are
// made only for what was recorded, and their columns change with the version (Nsight Systems,
// "Exporter SQLite schema"), so that both are checked before they are read. Times are in ns, names
// are ids of StringIds, and copyKind is CUpti_ActivityMemcpyKind of CUPTI.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "sim/config/diagnostics.h"
#include "sim/store/sqlite.h"
#include "sim/units/comma_separated.h"
#include "validation/importers/gpu_activities.h"
#include "validation/importers/importer.h"
#include "validation/importers/log_text.h"
#include "validation/importers/nsys_stats.h"

namespace orrery {
namespace {

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr const char* kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY";
constexpr const char* kMemsets = "CUPTI_ACTIVITY_KIND_MEMSET";
constexpr const char* kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";

constexpr std::array<const char*, 11> kCopyKinds = {
    "unknown",          "host_to_device", "device_to_host",  "host_to_array",
    "array_to_host",    "array_to_array", "array_to_device", "device_to_array",
    "device_to_device", "host_to_host",   "peer_to_peer"};

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
             std::vector<const char*> names) {
  if (columns.empty())
    throw config::ConfigError(
        fmt::format("{}: has no table {}; is it made by `nsys export --type sqlite` of a profile "
                    "with --trace=cuda (and --cuda-graph-trace=node) that ran a kernel?",
                    path, table));
  std::erase_if(names, [&](const char* name) { return has(columns, name); });
  if (!names.empty())
    throw config::ConfigError(
        fmt::format("{}: its table {} has no column {}; this version of nsys is not known", path,
                    table, comma_joined(names)));
}

/// The column, or NULL where this version has none.
std::string column_or_null(const std::vector<std::string>& columns, const char* name) {
  return has(columns, name) ? name : "NULL";
}

/// What tells activities of one kind apart: name, device, process, grid, block. -1: not told.
using NsysKey = std::array<std::int64_t, 9>;

struct NsysTimes {
  std::vector<std::int64_t> durations_ns;
  double bytes = 0;  ///< a sum that no file can make overflow
};
using NsysGroups = std::map<NsysKey, NsysTimes>;

class NsysReader {
 public:
  explicit NsysReader(const std::string& path)
      : path_(path), database_(path, Database::Mode::kRead) {}

  ImportedTable read() {
    graphs_ = columns_of(database_, kGraphs);
    read_devices();
    read_kernels();
    read_copies();
    read_memsets();
    read_graphs();
    ImportedTable table = activities_.table(path_);
    if (launched_graphs_ > 0)
      table.notes.push_back(
          fmt::format("{}: {} launches of whole CUDA graphs; their kernels are there when it is "
                      "recorded with --cuda-graph-trace=node",
                      path_, launched_graphs_));
    if (shared_numbers_)
      table.notes.push_back(path_ +
                            ": several processes number their devices each from 0, and no "
                            "table tells which ones these are");
    return table;
  }

 private:
  /// Processes number the devices that they see; TARGET_INFO_CUDA_DEVICE has those of the machine.
  void read_devices() {
    constexpr const char* kDevices = "TARGET_INFO_CUDA_DEVICE";
    const std::vector<std::string> columns = columns_of(database_, kDevices);
    if (!has(columns, "gpuId") || !has(columns, "cudaId") || !has(columns, "pid")) return;
    Statement statement =
        database_.prepare(std::string("SELECT pid, cudaId, gpuId FROM ") + kDevices);
    while (statement.step()) {
      devices_[{statement.integer(0), statement.integer(1)}] = statement.integer(2);
    }
  }

  std::string device_text(std::int64_t device, std::int64_t global_process) {
    if (device < 0) return {};
    const std::int64_t process = global_process >> 24 & 0xFFFFFF;  // of "globalPid" in the manual
    if (processes_.size() > 1) {
      const auto known = devices_.find({process, device});
      if (known != devices_.end()) return std::to_string(known->second);
      shared_numbers_ = true;
    }
    return std::to_string(device);
  }

  /// Groups the rows of a statement: start, end, then the parts of the key; bytes after those.
  NsysGroups group(const std::string& sql, bool with_bytes) {
    Statement statement = database_.prepare(sql);
    NsysGroups groups;
    while (statement.step()) {
      const std::int64_t start = statement.integer(0), end = statement.integer(1);
      if (statement.is_null(0) || statement.is_null(1) || start < 0 || end < start) {
        activities_.add_unfinished();
        continue;
      }
      NsysKey key;
      for (std::size_t i = 0; i < key.size(); ++i) {
        const int column = static_cast<int>(i) + 2;
        key[i] = statement.is_null(column) ? -1 : statement.integer(column);
      }
      if (key[2] >= 0) processes_.insert(key[2]);
      NsysTimes& times = groups[key];
      times.durations_ns.push_back(end - start);
      if (with_bytes) times.bytes += static_cast<double>(statement.integer(11));
    }
    return groups;
  }

  /// "start, end, name, device, process" and no shape.
  static std::string selection(const std::vector<std::string>& columns, const std::string& name) {
    return fmt::format("SELECT start, \"end\", {}, {}, {}", name,
                       column_or_null(columns, "deviceId"), column_or_null(columns, "globalPid"));
  }
  static constexpr const char* kNoShape = ", NULL, NULL, NULL, NULL, NULL, NULL";

  void read_kernels() {
    const std::vector<std::string> columns = columns_of(database_, kKernels);
    if (columns.empty() && !graphs_.empty()) return;
    require(path_, kKernels, columns, {"start", "end", "demangledName"});
    require(path_, "StringIds", columns_of(database_, "StringIds"), {"id", "value"});
    std::string sql = selection(columns, "demangledName");
    for (const char* size : {"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"})
      sql += ", " + column_or_null(columns, size);
    for (const auto& [key, times] : group(sql + " FROM " + kKernels, false)) {
      const auto shape = [&key = key](std::size_t at) {
        return key[at] < 0 ? std::string() : shape_text(key[at], key[at + 1], key[at + 2]);
      };
      activities_.add({"kernel", name_of(key[0]), device_text(key[1], key[2]), shape(3), shape(6)},
                      times.durations_ns);
    }
  }

  void read_copies() {
    const std::vector<std::string> columns = columns_of(database_, kCopies);
    if (columns.empty()) return;  // nothing was copied
    require(path_, kCopies, columns, {"start", "end", "copyKind", "bytes"});
    const std::string sql = selection(columns, "copyKind") + kNoShape + ", bytes FROM " + kCopies;
    for (const auto& [key, times] : group(sql, true)) {
      const std::int64_t kind = key[0];
      const bool known = kind >= 0 && kind < static_cast<std::int64_t>(kCopyKinds.size());
      activities_.add(
          {"memcpy",
           known ? kCopyKinds[static_cast<std::size_t>(kind)] : "kind_" + std::to_string(kind),
           device_text(key[1], key[2])},
          times.durations_ns, times.bytes);
    }
  }

  void read_memsets() {
    const std::vector<std::string> columns = columns_of(database_, kMemsets);
    if (columns.empty()) return;
    require(path_, kMemsets, columns, {"start", "end", "bytes"});
    const std::string sql = selection(columns, "NULL") + kNoShape + ", bytes FROM " + kMemsets;
    for (const auto& [key, times] : group(sql, true)) {
      activities_.add({"memset", "memset", device_text(key[1], key[2])}, times.durations_ns,
                      times.bytes);
    }
  }

  /// Launches of whole CUDA graphs, by the number of the graph.
  void read_graphs() {
    if (graphs_.empty()) return;
    require(path_, kGraphs, graphs_, {"start", "end"});
    const std::string sql =
        selection(graphs_, column_or_null(graphs_, "graphId")) + kNoShape + " FROM " + kGraphs;
    for (const auto& [key, times] : group(sql, false)) {
      launched_graphs_ += times.durations_ns.size();
      const std::string name = key[0] < 0 ? "graph" : "graph_" + std::to_string(key[0]);
      activities_.add({"graph", name, device_text(key[1], key[2])}, times.durations_ns);
    }
  }

  std::string name_of(std::int64_t id) const {
    Statement statement = database_.prepare("SELECT value FROM StringIds WHERE id = ?");
    statement.bind(1, id);
    if (statement.step()) return statement.text(0);
    throw config::ConfigError(
        fmt::format("{}: StringIds has no name {}, which a row of {} has", path_, id, kKernels));
  }

  const std::string& path_;
  Database database_;
  std::vector<std::string> graphs_;  // columns of the table; empty: there is none
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> devices_;  // process, number
  std::set<std::int64_t> processes_;
  GpuActivities activities_;
  std::size_t launched_graphs_ = 0;
  bool shared_numbers_ = false;
};

ImportedTable import_nsys(const std::string& path, const ImportOptions& /*options*/) {
  if (!holds_database(path)) {
    const std::string text = read_log(path);
    if (is_nsys_stats(text)) return read_nsys_stats(path, text);
  }
  try {
    return NsysReader(path).read();
  } catch (const StoreError& error) {
    const bool report = error.fault() == StoreFault::kForeign;
    throw config::ConfigError(
        std::string(error.what()) +
        (report ? "; a report (.nsys-rep) becomes one by `nsys export --type sqlite`" : ""));
  }
}

const ImporterRegistry::Register registered_nsys(
    "nsys", "activities of `nsys export --type sqlite`, or tables of `nsys stats --format csv`",
    import_nsys);

}  // namespace

}  // namespace orrery
