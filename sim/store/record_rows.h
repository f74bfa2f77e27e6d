// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/results/run_record.h"
#include "sim/store/result_store.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// Reads records from the tables of schema.h, one state of the file for each.
class RecordReader {
 public:
  explicit RecordReader(Database& database);

  /// @throws StoreError (kCorrupt) when the rows do not match their digest.
  std::optional<RunRecord> find(std::string_view identity);
  /// The first identity after this one; "" comes before all.
  std::optional<std::string> next_identity(std::string_view identity);

 private:
  void read_metrics(std::int64_t point, RunRecord& record);
  void read_classes(std::int64_t point, RunRecord& record);
  void read_links(std::int64_t point, const char* scope, std::vector<LinkUse>& links);
  void read_parameters(std::int64_t point, RunRecord& record);

  Statement point_, next_, metrics_, classes_, parameters_;
  std::optional<Statement> links_;  ///< stores before version 3 have none
};

/// Adds the rows of a record that is not there yet; returns its point. Within the caller's
/// transaction.
std::int64_t insert_record(Database& database, const RunRecord& record);

/// Adds a row to `runs`, unless the same run is there.
void insert_run(Database& database, std::int64_t point, const RunTimes& times);

}  // namespace orrery
