// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/app/sweeps/run/run_sweep.h"

namespace orrery {

/// A row of the table of a case: the points of one name.
struct SweepTableRow {
  std::string name;
  std::vector<const RunRecord*> records;  ///< results by place; none: all are excluded
  std::vector<const SweepPoint*> points;
  std::string excluded;  ///< rules that exclude points of the variant, with their numbers
};

/// The rows of a case, in the order of the plan. A variant without any point has one too.
/// @param results with all of their records
std::vector<SweepTableRow> table_rows(const Sweep& sweep, const SweepResults& results,
                                      std::size_t case_index);

/// Places of some variants (indices of Sweep::rows) that a rule of their case excludes.
std::uint64_t places_excluded(const SweepResults& results, const std::vector<std::size_t>& variants,
                              std::size_t rule);
/// "3 by memory.fits (whether every rank fits in its memory)": places that each rule excludes,
/// over some variants of one case.
std::vector<std::string> excluded_by(const Sweep& sweep, const SweepResults& results,
                                     const std::vector<std::size_t>& variants);
/// The variants of a case: indices of Sweep::rows.
std::vector<std::size_t> variants_of(const Sweep& sweep, std::size_t case_index);

/// The records that the table shows of a row: what `choose` optimises, or all that keep the limits.
/// At least one: the first stands for a row without any.
std::vector<const RunRecord*> shown_records(const ChooseConfig& choice, const SweepTableRow& row);

/// The name of a record in its row, with what tells it from the others where several are shown.
std::string title_of(const SweepTableRow& row, const RunRecord& record, bool one_of_many);
/// The point of a record of the row.
const SweepPoint& point_of(const SweepTableRow& row, const RunRecord& record);

/// Paths that `choose` picked a value of: those in which points of one row differ.
std::vector<std::string> chosen_paths(const SweepCaseConfig& described,
                                      const std::vector<SweepTableRow>& rows);
/// The value of a path in a point as it was written, else as its result has it; "-" without.
std::string value_at(const SweepTableRow& row, const RunRecord& record, const std::string& path);

/// Reasons of points without a result, each once with the number of its points.
class Reasons {
 public:
  /// @param row the name of the row @param point the name of the point in it
  void add(const std::string& row, const std::string& point, const std::string& reason);
  /// "  row: reason (3 points)\n", in the order of adding.
  std::string lines(const std::string& begin) const;

 private:
  struct Reason {
    std::string text, point;
    std::vector<std::string> rows;
    std::size_t count = 0;
  };
  std::vector<Reason> reasons_;
};

/// Adds why a row shows no result, and the reasons of points that cannot be.
void add_reasons(const ChooseConfig& choice, const SweepTableRow& row, Reasons& reasons);

}  // namespace orrery
