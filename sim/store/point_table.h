// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/results/configuration.h"
#include "sim/store/row_groups.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// The points of a store as columns, for questions about many of them: those of row groups from
/// there, checked as they are read; others in passes over the tables, unchecked. No record is made.
/// Reads what is there at that moment; a point that comes later is in no column.
class PointTable {
 public:
  using Group = PointKind;

  /// @param database has to outlive this object
  /// @throws StoreError (kCorrupt) where a row group is not as it was written
  explicit PointTable(const Database& database);

  std::size_t size() const { return points_.size(); }
  /// The row id of a point, ascending with the row.
  std::int64_t point(std::size_t row) const { return points_[row]; }
  const Group& group(std::size_t row) const { return groups_[group_of_[row]]; }
  std::uint32_t group_index(std::size_t row) const { return group_of_[row]; }
  const std::vector<Group>& groups() const { return groups_; }
  /// Points in each of groups().
  const std::vector<std::size_t>& counts() const { return counts_; }

  /// Rows of points that are in no row group: what columns say of them is not checked.
  const std::vector<std::size_t>& unchecked() const { return unchecked_; }

  /// Columns of what names stand for, each at its place; none where nothing is called so. A name is
  /// a metric or label ("step_time_s"), a quantile of a metric ("step_time_s.p90"), a path of the
  /// configuration ("parallel.tp"), one of name, identity, status, reason, exit_code, experiment,
  /// engine_version, or a part of the machine or model that has a name ("system" is
  /// "system.system").
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
  /// Points that follow each other, in a row group or in none.
  struct Part {
    std::size_t first = 0;                  ///< row of the first of them
    PointSpan range;                        ///< numbers of these points
    std::optional<RowGroup> group;          ///< group without its points
    std::vector<std::int64_t> points = {};  ///< points in no group
  };

  std::vector<std::string> metrics_of_type(bool words) const;
  void read_parts();
  void add_part(PointSpan range, std::optional<RowGroup> group);
  void add_points(const PointList& list);
  std::set<std::string> kinds() const;
  std::optional<PointColumn> metric(const std::string& name) const;
  std::optional<PointColumn> property(const std::string& name) const;
  std::optional<PointColumn> quantile(const std::string& name) const;
  std::optional<PointColumn> configured(const std::string& path) const;
  PointColumn of_groups(const std::string& name) const;
  /// Values of all points; sources of several tables have different points.
  PointColumn read(const std::vector<ColumnSource>& sources, std::string unit) const;
  const std::map<std::int64_t, std::shared_ptr<const Configuration>>& bases() const;

  const Database& database_;
  std::vector<Part> parts_;
  std::vector<std::size_t> unchecked_;
  std::vector<Group> groups_;
  std::vector<std::size_t> counts_;
  std::vector<std::int64_t> points_;
  std::vector<std::uint32_t> group_of_;
  mutable std::map<std::int64_t, std::shared_ptr<const Configuration>> bases_;
};

}  // namespace orrery
