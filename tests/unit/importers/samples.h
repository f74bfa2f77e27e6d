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

}  // namespace orrery
