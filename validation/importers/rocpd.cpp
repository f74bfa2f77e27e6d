// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/rocpd.h"

#include <map>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/store/sqlite.h"
#include "validation/importers/gpu_activities.h"

namespace orrery {
namespace {

constexpr std::string_view kDispatches = "rocpd_kernel_dispatch", kCopies = "rocpd_memory_copy";

class RocpdReader {
 public:
  explicit RocpdReader(const std::string& path)
      : path_(path), database_(path, Database::Mode::kRead) {}

  ImportedTable read() {
    const std::vector<std::string> processes = suffixes(kDispatches);
    for (const std::string& process : processes) read_dispatches(process);
    for (const std::string& process : suffixes(kCopies)) read_copies(process);
    const bool is_older = processes.empty() && has_table("rocpd_op");
    if (is_older) read_operations();
    if (processes.empty() && !is_older) {
      throw config::ConfigError(path_ +
                                ": has no table rocpd_kernel_dispatch or rocpd_op; is it "
                                "made by rocprofv3 with --kernel-trace?");
    }
    ImportedTable table = activities_.table(path_);
    if (table.rows.empty() && table.notes.empty()) {
      throw config::ConfigError(path_ + ": holds no activity of a GPU");
    }
    return table;
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

  static std::string quoted(std::string_view name, const std::string& suffix) {
    return '"' + std::string(name) + suffix + '"';
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
    std::string sql = "SELECT d.start, d.\"end\", ";
    sql += shown ? "s.display_name" : "s.kernel_name";
    sql += agents ? ", COALESCE(a.absolute_index, d.agent_id)" : ", d.agent_id";
    sql +=
        ", d.grid_size_x, d.grid_size_y, d.grid_size_z, d.workgroup_size_x, "
        "d.workgroup_size_y, d.workgroup_size_z FROM ";
    sql += quoted(kDispatches, process) + " d LEFT JOIN ";
    sql += quoted("rocpd_info_kernel_symbol", process) + " s ON s.id = d.kernel_id";
    if (agents) {
      sql += " LEFT JOIN " + quoted("rocpd_info_agent", process) + " a ON a.id = d.agent_id";
    }
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
    Statement statement =
        database_.prepare("SELECT c.start, c.\"end\", s.string, c.size, c.dst_agent_id FROM " +
                          quoted(kCopies, process) + " c LEFT JOIN " +
                          quoted("rocpd_string", process) + " s ON s.id = c.name_id");
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

}  // namespace

ImportedTable read_rocpd(const std::string& path) {
  try {
    return RocpdReader(path).read();
  } catch (const StoreError& error) {
    throw config::ConfigError(std::string(error.what()) +
                              "; the tables are not those of rocprofv3 or rocm-profile-data");
  }
}

}  // namespace orrery
