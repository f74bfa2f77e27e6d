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

/// Reads the records of stores of versions 1 to 3, one state of the file for each.
class OldRecordReader {
 public:
  /// @param prefix of the names of their tables: "" where they lie, "old_" while they are migrated
  OldRecordReader(Database& database, const std::string& prefix);

  /// @throws StoreError (kCorrupt) when the rows do not match their digest.
  std::optional<RunRecord> find(std::string_view identity);
  /// The first identity after this one; "" comes before all.
  std::optional<std::string> next_identity(std::string_view identity);
  std::string engine_version(std::string_view identity);
  std::vector<RunTimes> times(std::string_view identity);

 private:
  void read_metrics(std::int64_t point, RunRecord& record);
  void read_classes(std::int64_t point, RunRecord& record);
  void read_links(std::int64_t point, const char* scope, std::vector<LinkUse>& links);
  std::vector<Parameter> read_parameters(std::int64_t point);

  Database& database_;
  Statement point_, next_, engine_, metrics_, classes_, parameters_, runs_;
  std::optional<Statement> links_;  ///< stores before version 3 have none
};

}  // namespace orrery
