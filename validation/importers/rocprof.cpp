// SPDX-License-Identifier: Apache-2.0
// What the profilers of ROCm write: CSV of rocprof (results.csv, results.stats.csv), rocprofv2 and
// rocprofv3 (kernel_trace.csv, memory_copy_trace.csv, kernel_stats.csv, counter_collection.csv),
// and the databases of rocprofv3 and of rocm-profile-data (ROCm documentation, "Using rocprofv3",
// "rocprof"). All times are in ns; grids are counted in work-items, which become workgroups here.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/config/csv.h"
#include "sim/config/diagnostics.h"
#include "sim/store/sqlite.h"
#include "validation/importers/gpu_activities.h"
#include "validation/importers/importer.h"
#include "validation/importers/log_text.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

/// The SQLite file of rocprofv3 (rocpd_kernel_dispatch and rocpd_memory_copy, once for each
/// process, with its identity in the names of the tables), or of rocm-profile-data (rocpd_op).
class RocpdReader {
 public:
  explicit RocpdReader(const std::string& path)
      : path_(path), database_(path, Database::Mode::kRead) {}

  ImportedTable read() {
    const std::vector<std::string> processes = suffixes("rocpd_kernel_dispatch");
    for (const std::string& process : processes) read_dispatches(process);
    for (const std::string& process : suffixes("rocpd_memory_copy")) read_copies(process);
    const bool is_older = processes.empty() && has_table("rocpd_op");
    if (is_older) read_operations();
    if (processes.empty() && !is_older)
      throw config::ConfigError(path_ +
                                ": has no table rocpd_kernel_dispatch or rocpd_op; is it "
                                "made by rocprofv3 with --kernel-trace?");
    return activities_.table(path_);
  }

 private:
  bool has_column(const std::string& table, std::string_view column) const {
    Statement statement = database_.prepare("SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2");
    statement.bind(1, std::string_view(table)).bind(2, column);
    return statement.step();
  }

  bool has_table(std::string_view name) const {
    Statement statement =
        database_.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
    statement.bind(1, name);
    return statement.step();
  }

  /// What follows the name in those of tables: "_1f2e..." for each process, or nothing.
  std::vector<std::string> suffixes(std::string_view name) const {
    Statement statement = database_.prepare(
        "SELECT substr(name, length(?1) + 1) FROM sqlite_master WHERE type = 'table' AND "
        "substr(name, 1, length(?1)) = ?1 ORDER BY name");
    statement.bind(1, name);
    std::vector<std::string> found;
    while (statement.step()) {
      std::string suffix = statement.text(0);
      // The name stands in statements; identities are hexadecimal.
      if (suffix.find('"') == suffix.npos) found.push_back(std::move(suffix));
    }
    return found;
  }

  /// A duration, or nothing for what has no start or end.
  std::optional<std::int64_t> duration(const Statement& row) {
    const std::int64_t start = row.integer(0), end = row.integer(1);
    if (!row.is_null(0) && !row.is_null(1) && start >= 0 && end >= start) return end - start;
    activities_.add_unfinished();
    return std::nullopt;
  }

  using Groups = std::map<ActivityGroup, std::vector<std::int64_t>>;
  void add(const Groups& groups) {
    for (const auto& [group, durations] : groups) activities_.add(group, durations);
  }

  /// Devices have the number that the CSV of rocprofv3 gives its agents, names no parts that the
  /// assembler adds.
  std::string dispatches_of(const std::string& process) const {
    const bool shown = has_column("rocpd_info_kernel_symbol" + process, "display_name");
    const bool agents = has_column("rocpd_info_agent" + process, "absolute_index");
    std::string sql = fmt::format(
        R"(SELECT d.start, d."end", {}, {}, d.grid_size_x, d.grid_size_y, d.grid_size_z,
           d.workgroup_size_x, d.workgroup_size_y, d.workgroup_size_z
           FROM "rocpd_kernel_dispatch{}" d
           LEFT JOIN "rocpd_info_kernel_symbol{}" s ON s.id = d.kernel_id)",
        shown ? "s.display_name" : "s.kernel_name",
        agents ? "COALESCE(a.absolute_index, d.agent_id)" : "d.agent_id", process, process);
    if (agents)
      sql += fmt::format(R"( LEFT JOIN "rocpd_info_agent{}" a ON a.id = d.agent_id)", process);
    return sql;
  }

  void read_dispatches(const std::string& process) {
    Statement statement = database_.prepare(dispatches_of(process));
    Groups groups;
    while (statement.step()) {
      const auto length = duration(statement);
      if (!length) continue;
      ActivityGroup group{"kernel", statement.text(2), statement.text(3)};
      std::int64_t blocks[3], threads[3];
      for (int axis = 0; axis < 3; ++axis) {
        threads[axis] = std::max<std::int64_t>(statement.integer(7 + axis), 1);
        const std::int64_t items = std::max<std::int64_t>(statement.integer(4 + axis), 0);
        blocks[axis] = items / threads[axis] + (items % threads[axis] == 0 ? 0 : 1);
      }
      group.grid = shape_text(blocks[0], blocks[1], blocks[2]);
      group.block = shape_text(threads[0], threads[1], threads[2]);
      groups[group].push_back(*length);
    }
    add(groups);
  }

  void read_copies(const std::string& process) {
    Statement statement = database_.prepare(fmt::format(
        R"(SELECT c.start, c."end", s.string, c.size, c.dst_agent_id
           FROM "rocpd_memory_copy{}" c LEFT JOIN "rocpd_string{}" s ON s.id = c.name_id)",
        process, process));
    while (statement.step()) {
      const auto length = duration(statement);
      if (!length) continue;
      const std::string name = statement.text(2);
      activities_.add({"memcpy", copy_direction(name).value_or(name)}, {*length},
                      static_cast<double>(statement.integer(3)));
    }
  }

  /// rocm-profile-data: one table of operations, names by number.
  void read_operations() {
    Statement statement = database_.prepare(
        "SELECT o.start, o.\"end\", d.string, o.gpuId, t.string FROM rocpd_op o LEFT JOIN "
        "rocpd_string d ON d.id = o.description_id LEFT JOIN rocpd_string t ON t.id = o.opType_id");
    Groups groups;
    while (statement.step()) {
      const auto length = duration(statement);
      if (!length) continue;
      const std::string type = statement.text(4), name = statement.text(2);
      if (const auto direction = copy_direction(type)) {
        groups[{"memcpy", *direction, statement.text(3)}].push_back(*length);
      } else if (type.find("Fill") != type.npos || type.find("Memset") != type.npos) {
        groups[{"memset", "memset", statement.text(3)}].push_back(*length);
      } else {
        groups[{"kernel", name.empty() ? type : name, statement.text(3)}].push_back(*length);
      }
    }
    add(groups);
  }

  const std::string& path_;
  Database database_;
  GpuActivities activities_;
};

ImportedTable read_rocpd(const std::string& path) {
  try {
    return RocpdReader(path).read();
  } catch (const StoreError& error) {
    throw config::ConfigError(std::string(error.what()) +
                              "; the tables are not those of rocprofv3 or rocm-profile-data");
  }
}

/// Names of a table's rows that are calls of the host or whole domains, and no work of a GPU.
bool is_host_call(std::string_view name) {
  constexpr std::string_view kDomains[] = {"HIP_",
                                           "HSA_",
                                           "MARKER_",
                                           "ROCTX_",
                                           "RCCL_",
                                           "ROCDECODE_",
                                           "KERNEL_DISPATCH",
                                           "SCRATCH_",
                                           "MEMORY_ALLOCATION",
                                           "MEMORY_COPY"};
  const bool is_domain = std::any_of(std::begin(kDomains), std::end(kDomains), [name](auto domain) {
    return name == domain || (domain.ends_with('_') && name.starts_with(domain));
  });
  const bool is_call = (name.starts_with("hip") && name.size() > 3 && name[3] >= 'A' &&
                        name[3] <= 'Z' && name.find('(') == name.npos) ||
                       name.starts_with("hsa_") || name.starts_with("__hip");
  return is_domain || is_call;
}

class RocprofReader {
 public:
  RocprofReader(const std::string& path, std::string text)
      : path_(path), csv_(path, std::move(text)) {}

  ImportedTable read() {
    if (csv_.find("TotalDurationNs")) {
      read_stats();
    } else {
      read_trace();
    }
    csv_.throw_if_errors();
    ImportedTable table = activities_.table(path_);
    if (host_calls_ > 0)
      table.notes.push_back(fmt::format(
          "{}: left out {} rows of calls of the host or of whole domains", path_, host_calls_));
    return table;
  }

 private:
  using Place = std::optional<std::size_t>;

  Place first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (const Place place = csv_.find(name)) return place;
    return {};
  }

  /// A whole number of ns; nothing, and an error, for others.
  std::optional<std::int64_t> count(std::size_t place) {
    const auto value = parse_count(csv_.cell(place));
    if (!value)
      csv_.error(place, fmt::format("'{}' is a whole number from 0 on, not '{}'",
                                    csv_.columns()[place], csv_.cell(place)));
    return value;
  }

  static ActivityGroup named(std::string_view name) {
    if (const auto direction = copy_direction(name); direction && name.find('(') == name.npos) {
      return {"memcpy", *direction};
    }
    constexpr std::string_view kClone = " [clone .kd]", kObject = ".kd";
    if (name.ends_with(kClone)) name.remove_suffix(kClone.size());
    if (name.ends_with(kObject)) name.remove_suffix(kObject.size());
    return {"kernel", std::string(name)};
  }

  void read_stats() {
    const Place name = csv_.find("Name"), calls = csv_.find("Calls"),
                total = csv_.find("TotalDurationNs");
    if (!name || !calls) return csv_.error(0, "a table of sums has the columns Name and Calls");
    const Place least = csv_.find("MinNs"), most = csv_.find("MaxNs");
    while (csv_.next()) {
      if (is_host_call(csv_.cell(*name))) {
        ++host_calls_;
        continue;
      }
      const auto number = count(*calls);
      const auto sum = optional_time(csv_, total);
      if (!number || !sum) continue;
      activities_.add_sum(named(csv_.cell(*name)),
                          ActivityTimes{*number, *sum, std::nullopt, optional_time(csv_, least),
                                        optional_time(csv_, most), std::nullopt});
    }
  }

  void read_trace() {
    const Place begin = first_of({"Start_Timestamp", "BeginNs", "start_timestamp"}),
                end = first_of({"End_Timestamp", "EndNs", "end_timestamp"}),
                name = first_of({"Kernel_Name", "KernelName", "Direction", "Name"});
    if (!begin || !end || !name) {
      csv_.error(0,
                 "a trace has the name of the kernel or the direction of the copy and the "
                 "columns Start_Timestamp and End_Timestamp (rocprofv3 --kernel-trace), or "
                 "BeginNs and EndNs (rocprof --timestamp on)");
      return;
    }
    const Place device = first_of({"Agent_Id", "GPU_ID", "gpu-id", "Source_Agent_Id"}),
                counter = csv_.find("Counter_Name"), dispatch = csv_.find("Dispatch_Id");
    const bool copies = csv_.columns()[*name] == "Direction";
    std::set<std::string> seen;  // dispatches, which have a row for each counter
    while (csv_.next()) {
      if (counter && dispatch) {
        const std::string which = std::string(csv_.cell(*dispatch)) + " " +
                                  (device ? std::string(csv_.cell(*device)) : std::string());
        if (!seen.insert(which).second) continue;
      }
      add_activity(*begin, *end, *name, device, copies);
    }
  }

  void add_activity(std::size_t begin, std::size_t end, std::size_t name, Place device,
                    bool copies) {
    const std::string_view text = csv_.cell(name);
    if (is_host_call(text) && !copies) {
      ++host_calls_;
      return;
    }
    ActivityGroup group = named(text);
    if (copies)
      group = {"memcpy", copy_direction("copy_" + std::string(text)).value_or(std::string(text))};
    if (device) group.device = device_of(csv_.cell(*device));
    if (!copies) add_shape(group);
    if (csv_.cell(begin).empty() || csv_.cell(end).empty()) return activities_.add_unfinished();
    const auto from = count(begin), to = count(end);
    if (!from || !to) return;
    if (*to < *from || *to == 0) return activities_.add_unfinished();
    activities_.add(group, {*to - *from});
  }

  /// "Agent 4" as "4"
  static std::string device_of(std::string_view text) {
    constexpr std::string_view kAgent = "Agent ";
    if (text.starts_with(kAgent)) text.remove_prefix(kAgent.size());
    return std::string(text);
  }

  void add_shape(ActivityGroup& group) const {
    constexpr std::array<std::array<const char*, 2>, 3> kAxes = {
        {{"Grid_Size_X", "Workgroup_Size_X"},
         {"Grid_Size_Y", "Workgroup_Size_Y"},
         {"Grid_Size_Z", "Workgroup_Size_Z"}}};
    std::array<std::int64_t, 3> blocks{}, threads{};
    for (std::size_t axis = 0; axis < kAxes.size(); ++axis) {
      if (!shape_of(csv_.find(kAxes[axis][0]), csv_.find(kAxes[axis][1]), blocks[axis],
                    threads[axis])) {
        // Older formats have only the product of the axes.
        if (axis > 0 || !shape_of(first_of({"Grid_Size", "grd"}),
                                  first_of({"Workgroup_Size", "wgr"}), blocks[0], threads[0])) {
          return;
        }
        blocks[1] = blocks[2] = threads[1] = threads[2] = 1;
        break;
      }
    }
    group.grid = shape_text(blocks[0], blocks[1], blocks[2]);
    group.block = shape_text(threads[0], threads[1], threads[2]);
  }

  bool shape_of(Place grid, Place block, std::int64_t& blocks, std::int64_t& threads) const {
    const auto items = grid ? parse_count(csv_.cell(*grid)) : std::nullopt;
    const auto group = block ? parse_count(csv_.cell(*block)) : std::nullopt;
    if (!items || !group || *group == 0) return false;
    blocks = *items / *group + (*items % *group == 0 ? 0 : 1);
    threads = *group;
    return true;
  }

  const std::string& path_;
  config::CsvReader csv_;
  GpuActivities activities_;
  int host_calls_ = 0;
};

ImportedTable import_rocprof(const std::string& path, const ImportOptions& /*options*/) {
  ImportedTable table =
      holds_database(path) ? read_rocpd(path) : RocprofReader(path, read_log(path)).read();
  if (table.rows.empty() && table.notes.empty())
    throw config::ConfigError(path + ": holds no activity of a GPU");
  return table;
}

const ImporterRegistry::Register registered_rocprof(
    "rocprof", "kernels and copies of rocprof, rocprofv2 and rocprofv3: CSV or database",
    import_rocprof);

}  // namespace
}  // namespace orrery
