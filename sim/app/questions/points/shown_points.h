// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/questions/points/stored_points.h"
#include "sim/results/answer.h"

namespace orrery {

/// What is to be as much or as little as possible: a metric, a quantile of one, or a number of the
/// configuration.
struct Objective {
  std::string name;
  bool maximize = true;
};

/// Points that a question picked.
struct ShownPoints {
  std::vector<std::size_t> rows;    ///< rows of the table, in the order of showing
  std::vector<std::string> groups;  ///< what each belongs to; empty: nothing was asked
};

/// Questions that pick points by objectives have this in common.
struct PickingQuestion {
  StoreChoice choice;
  std::string by;          ///< path, metric or name that groups are by; empty: all are one group
  std::string columns;     ///< names of columns in the place of the usual ones, with commas
  std::string at = "p50";  ///< which value of a metric counts

  /// `--at` of the command line.
  void take_at(Options& options);
  /// `--by` and `--columns`. @param what each value of `by` has
  void take_by_and_columns(Options& options, const std::string& what);

  /// The numbers that points are compared by.
  /// @throws UsageError for what is no number of this store
  std::vector<PointColumn> compared_numbers(const StoredPoints& stored,
                                            const std::vector<Objective>& objectives) const;
  /// Rows of the points that have all of some columns, by the value of `by`.
  std::map<std::string, std::vector<std::size_t>> groups_of(
      const StoredPoints& stored, const std::vector<PointColumn>& compared) const;
  /// Points with what tells them apart and the objectives with their p10 to p90, as a table for
  /// people, `points` for programs, and CSV. @param most rows of the table for people; 0: all
  Answer show(const std::string& schema, const StoredPoints& stored, const ShownPoints& shown,
              const std::vector<Objective>& objectives, std::size_t most) const;
};

/// The last part of a path, or all of it where others end alike.
std::string column_title(const std::string& path, const std::vector<std::string>& paths);

/// A value of a column for people, with its unit; "-" without.
std::string text_of(const PointColumn& column, std::size_t row);

/// A value of a column for people, with its unit.
std::string value_text(double value, const std::string& unit);

/// A value for programs; "" without.
std::string number_text(const std::optional<double>& value);

/// "3 of 12 points" and what was not looked at, where that is worth a word.
std::string considered(const StoredPoints& stored, std::size_t shown, const std::string& what);

}  // namespace orrery
