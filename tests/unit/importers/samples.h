// SPDX-License-Identifier: Apache-2.0
// Inputs that several tests read.
#pragma once

#include <string>

#include "sim/store/sqlite.h"
#include "validation/importers/importer.h"

namespace orrery {

/// A file of data/, made for these tests.
inline std::string sample(const std::string& name) {
  return std::string(ORRERY_SOURCE_DIR) + "/tests/unit/importers/data/" + name;
}

/// A cell by the name of its column, as text.
inline std::string cell(const ImportedTable& table, std::size_t row, const std::string& column) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i] == column) return to_text(table.rows.at(row).at(i));
  }
  return "no column " + column;
}

/// Writes what nsys exports of a profile: three launches of one kernel (100, 300 and 200 ns; the
/// one that starts first is the last row), two of another (10 and 21 ns), one that did not end, and
/// two copies of 4096 bytes to the device (50 and 70 ns).
inline void write_nsys_sample(const std::string& path) {
  Database database(path, Database::Mode::kCreate);
  database.execute(
      "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
      "INSERT INTO StringIds VALUES (7, 'void gemm<float, 4>(float *)'), (8, 'softmax');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,"
      " demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,"
      " blockX INTEGER, blockY INTEGER, blockZ INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES"
      " (2000, 2100, 0, 7, 7, 64, 1, 1, 128, 1, 1),"
      " (3000, 3300, 0, 7, 7, 32, 1, 1, 128, 1, 1),"
      " (1000, 1200, 0, 7, 7, 132, 2, 1, 256, 1, 1),"
      " (4000, 4010, 0, 8, 8, 1, 1, 1, 32, 1, 1),"
      " (5000, 5021, 0, 8, 8, 1, 1, 1, 32, 1, 1),"
      " (6000, NULL, 0, 8, 8, 1, 1, 1, 32, 1, 1);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, bytes INTEGER,"
      " copyKind INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (10, 60, 4096, 1), (100, 170, 4096, 1);");
}

/// Writes what rocprofv3 makes of a process: two launches of a kernel of 16 groups (100 and 200 ns)
/// and a copy of 4096 bytes (50 ns).
inline void write_rocpd_sample(const std::string& path) {
  Database database(path, Database::Mode::kCreate);
  database.execute(
      "CREATE TABLE rocpd_string_7f (id INTEGER PRIMARY KEY, guid TEXT, string TEXT);"
      "INSERT INTO rocpd_string_7f VALUES (1, '7f', 'MEMORY_COPY_HOST_TO_DEVICE');"
      "CREATE TABLE rocpd_info_kernel_symbol_7f (id INTEGER PRIMARY KEY, display_name TEXT);"
      "INSERT INTO rocpd_info_kernel_symbol_7f VALUES (5, 'gemm(float*)');"
      "CREATE TABLE rocpd_kernel_dispatch_7f (id INTEGER PRIMARY KEY, agent_id INTEGER, kernel_id"
      " INTEGER, start INTEGER, end INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER,"
      " workgroup_size_z INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER);"
      "INSERT INTO rocpd_kernel_dispatch_7f VALUES (1, 2, 5, 10, 110, 256, 1, 1, 4096, 1, 1),"
      " (2, 2, 5, 200, 400, 256, 1, 1, 4096, 1, 1);"
      "CREATE VIEW rocpd_kernel_dispatch AS SELECT * FROM rocpd_kernel_dispatch_7f;"
      "CREATE TABLE rocpd_memory_copy_7f (id INTEGER PRIMARY KEY, start INTEGER, end INTEGER,"
      " name_id INTEGER, dst_agent_id INTEGER, size INTEGER);"
      "INSERT INTO rocpd_memory_copy_7f VALUES (1, 500, 550, 1, 2, 4096);");
}

}  // namespace orrery
