// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/results/configuration.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// One value of every point of a store.
struct PointColumn {
  enum class Kind { kNumber, kFlag, kWord };
  Kind kind = Kind::kNumber;
  std::string unit;                  ///< unit of numbers: "s"; empty for counts
  std::vector<double> numbers;       ///< numbers by row, flags as 1 and 0; not a number: nothing
  std::vector<std::uint32_t> codes;  ///< places of words by row in `words`; 0: nothing
  std::vector<std::string> words = {""};

  bool has(std::size_t row) const;
  const std::string& word(std::size_t row) const { return words[codes[row]]; }
};

/// The points of a store as columns, for questions about many of them: one pass over a table for
/// each column, no record is made. Reads what is there at that moment; a point that comes later is
/// in no column.
class PointTable {
 public:
  /// What points have in common.
  struct Group {
    std::string status;          ///< "ok", "infeasible", "failed"
    std::string experiment;      ///< kind of experiment
    std::string engine_version;  ///< engine that made the result
    std::int64_t base = 0;       ///< row of `configurations`; 0: none
  };

  /// @param database of version 4 or later; has to outlive this object
  explicit PointTable(const Database& database);

  std::size_t size() const { return points_.size(); }
  /// The row id of a point, ascending with the row.
  std::int64_t point(std::size_t row) const { return points_[row]; }
  const Group& group(std::size_t row) const { return groups_[group_of_[row]]; }
  std::uint32_t group_index(std::size_t row) const { return group_of_[row]; }
  const std::vector<Group>& groups() const { return groups_; }
  /// Points in each of groups().
  const std::vector<std::size_t>& counts() const { return counts_; }

  /// Columns of what names stand for, each at its place; none where nothing is called so. A name is
  /// a metric or label ("step_time_s"), a quantile of a metric ("step_time_s.p90"), a path of the
  /// configuration ("parallel.tp"), or one of name, identity, status, reason, exit_code,
  /// experiment, engine_version. Metrics of one table are read in one pass.
  std::vector<std::optional<PointColumn>> columns(const std::vector<std::string>& names) const;
  std::optional<PointColumn> column(const std::string& name) const;

  /// Metrics that are numbers, in any kind of results.
  std::vector<std::string> metrics() const;
  /// Metrics that are words.
  std::vector<std::string> labels() const;
  /// Paths that points have otherwise than their base, and paths that bases have otherwise than
  /// each other: what tells points apart. Sorted.
  std::vector<std::string> axes() const;
  /// Every path of any configuration, sorted.
  std::vector<std::string> paths() const;

 private:
  std::vector<std::string> metrics_of_type(const char* type) const;
  void read_groups();
  void read_points();
  void read_metrics(const std::vector<std::string>& names,
                    std::vector<std::optional<PointColumn>>& columns) const;
  /// Puts the values of a statement, after the point, into the columns at those places.
  void fill(Statement& select, const std::vector<std::size_t>& places,
            std::vector<std::optional<PointColumn>>& columns) const;
  std::optional<PointColumn> property(const std::string& name) const;
  std::optional<PointColumn> quantile(const std::string& name) const;
  std::optional<PointColumn> configured(const std::string& path) const;
  PointColumn empty_column(PointColumn::Kind kind, std::string unit) const;
  /// Calls `set(row)` for each row of a statement whose first column is a point, ascending.
  template <class Set>
  void merge(Statement& select, const Set& set) const;
  const std::map<std::int64_t, std::shared_ptr<const Configuration>>& bases() const;

  const Database& database_;
  std::vector<Group> groups_;
  std::vector<std::size_t> counts_;
  std::vector<std::int64_t> points_;
  std::vector<std::uint32_t> group_of_;
  mutable std::map<std::int64_t, std::shared_ptr<const Configuration>> bases_;
};

}  // namespace orrery
