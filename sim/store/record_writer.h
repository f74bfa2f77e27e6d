// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/results/run_record.h"
#include "sim/store/result_store.h"
#include "sim/store/seal.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// Writes records as rows of the tables of schema.h, within the caller's transactions. What it
/// knows of the tables it keeps from one record to the next.
class RecordWriter {
 public:
  explicit RecordWriter(Database& database);

  /// What is stored for an identity.
  struct Stored {
    std::int64_t point;
    RunStatus status;
    std::string digest;
  };
  std::optional<Stored> find(std::string_view identity);
  /// Adds the rows of a record that is not there yet; returns its point.
  std::int64_t insert(const RunRecord& record, const std::string& digest,
                      const std::string& engine_version, int exit_code);
  /// Adds an execution, unless the same one is there.
  void insert_attempt(std::int64_t point, const RunTimes& times);
  /// Drops a point with its rows. @return its executions
  std::vector<RunTimes> remove(std::int64_t point);
  /// Makes row groups of the points that have come (row_groups.h).
  void add_row_groups();
  /// To be called where a transaction was rolled back: what it had added is not there.
  void forget();

 private:
  struct Base {
    std::int64_t id = 0;
    std::shared_ptr<const Configuration> configuration;
  };
  struct Values {
    std::int64_t layout = 0;
    Statement insert;
  };

  /// The row of a configuration, and what the record has otherwise.
  std::optional<std::int64_t> base_of(const RunRecord& record, std::vector<Variation>& varied);
  std::int64_t id_of(const Configuration& configuration);
  Values& values_of(const RunRecord& record);
  void add_columns(const RunRecord& record);
  void insert_values(std::int64_t point, const RunRecord& record, Values& values);
  void insert_varied(std::int64_t point, const std::vector<Variation>& varied);
  void insert_classes(std::int64_t point, const RunRecord& record);
  void insert_rows(std::int64_t point, const ResultRows& rows);
  void insert_links(std::int64_t point, const char* scope, const std::vector<LinkUse>& links);

  Database& database_;
  Seal seal_;
  Statement find_, point_, varied_, interval_, class_, link_, attempt_;
  std::int64_t last_point_ = 0;                     ///< last point that was added
  std::int64_t next_row_group_ = 0;                 ///< groups before it were made, or could not be
  std::map<std::string, std::vector<Base>> bases_;  ///< last few of records, by kind
  std::map<std::string, Values> values_;            ///< values by kind and layout
};

/// Executions of a point, the first one first.
std::vector<RunTimes> read_attempts(const Database& database, std::int64_t point);

/// A name such as "metrics_training".
std::string metrics_table(const std::string& experiment);
/// In double quotes, for SQL.
std::string sql_name(const std::string& name);

}  // namespace orrery
