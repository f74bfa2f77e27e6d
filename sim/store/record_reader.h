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
#include "sim/store/seal.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// The status that a word of a store names. @throws StoreError (kForeign) for a word that is no
/// status
RunStatus stored_status(const Database& database, std::string_view identity,
                        const std::string& word);

/// Reads records from the tables of schema.h, one state of the file for each. What records share is
/// read once.
class RecordReader {
 public:
  explicit RecordReader(Database& database);

  std::optional<RunStatus> status(std::string_view identity);
  /// @throws StoreError (kCorrupt) when the rows do not match their digest.
  std::optional<RunRecord> find(std::string_view identity);
  /// The first identity after this one; "" comes before all.
  std::optional<std::string> next_identity(std::string_view identity);

 private:
  /// Names of a layout, and the statement that reads their values.
  struct Values {
    std::vector<Metric> metrics;
    std::vector<Label> labels;
    Statement select;
  };

  void read_all(RunRecord& record);
  void read_rows(std::int64_t point, RunRecord& record);
  void read_values(std::int64_t point, std::int64_t layout, RunRecord& record);
  void read_varied(std::int64_t point, RunRecord& record);
  void read_classes(std::int64_t point, RunRecord& record);
  void read_links(std::int64_t point, const char* scope, std::vector<LinkUse>& links);
  std::shared_ptr<const Configuration> configuration(std::int64_t base);
  Values& values(const std::string& experiment, std::int64_t layout);

  Database& database_;
  Seal seal_;
  Statement status_, point_, next_, intervals_, varied_, classes_, links_;
  std::vector<Statement> rows_;  ///< statements by kRowTables
  std::map<std::int64_t, std::shared_ptr<const Configuration>> configurations_;
  std::map<std::pair<std::string, std::int64_t>, Values> values_;
};

/// A row of `configurations`.
std::shared_ptr<const Configuration> read_configuration(const Database& database,
                                                        std::int64_t base);

}  // namespace orrery
