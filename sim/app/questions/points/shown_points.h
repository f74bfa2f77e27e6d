// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
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
  std::string by;                   ///< path that groups are by
  /// Names of columns in the place of the usual ones: what tells points apart, and the objectives.
  std::vector<std::string> columns;
};

/// `--by` of a question.
void take_by(Options& options, std::string& by, const std::string& what);
/// The value of `by` of a row of the table; empty: all rows are one group.
std::function<std::string(std::size_t row)> groups_by(const StoredPoints& stored,
                                                      const std::string& by);

/// The last part of a path, or all of it where others end alike.
std::string column_title(const std::string& path, const std::vector<std::string>& paths);

/// A value of a column for people, with its unit; "-" without.
std::string text_of(const PointColumn& column, std::size_t row);

/// `--maximize` and `--minimize` of a question.
std::vector<Objective> objectives_of(const std::vector<std::string>& maximize,
                                     const std::vector<std::string>& minimize);

/// `--at` of a question: which value of a metric counts.
struct Quantile {
  std::string at = "p50";

  void take(Options& options);
  /// What holds in nine of ten cases: the unfavourable end of p10 to p90, where a metric has one.
  bool p90() const { return at == "p90"; }
};

/// The numbers that points are compared by.
/// @throws UsageError for what is no number of this store
std::vector<PointColumn> compared_numbers(const StoredPoints& stored,
                                          const std::vector<Objective>& objectives,
                                          const Quantile& at);

/// Points with what tells them apart and the objectives with their p10 to p90, as a table for
/// people, `points` for programs, and CSV. @param most rows of the table for people; 0: all
Answer shown_points(const StoredPoints& stored, const ShownPoints& shown,
                    const std::vector<Objective>& objectives, std::size_t most);

/// A value of a column for people, with its unit.
std::string value_text(double value, const std::string& unit);

/// "3 of 12 points" and what was not looked at, where that is worth a word.
std::string considered(const StoredPoints& stored, std::size_t shown, const std::string& what);

}  // namespace orrery
