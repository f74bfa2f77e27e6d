// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/keys/table_columns.h"
#include "sim/app/sweeps/sweep_config.h"

namespace orrery {

/// The columns of a case: those that it asks for, in the place of the usual ones. A metric stands
/// with its interval where it has one.
std::vector<SweepColumn> sweep_columns(const SweepTableConfig& asked, const TableView& usual);

/// The factor by which each row of a table is better than the first and the one above; factors of
/// successive rows multiply to that over the first. Rows without a result are passed over.
class Gains {
 public:
  explicit Gains(const SweepTableConfig& asked) : sought_(asked.gain) {}

  /// Titles of the two columns; none where no gain is asked for.
  std::vector<Table::Column> titles() const;
  /// The cells of the next row. @param fits whether the row has a result
  std::vector<std::string> next(const RunRecord& record, bool fits);

 private:
  std::optional<ObjectiveConfig> sought_;
  std::optional<double> first_, above_;
};

}  // namespace orrery
