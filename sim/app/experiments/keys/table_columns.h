// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/results/run_record.h"
#include "sim/results/table.h"

namespace orrery {

struct Experiment;

/// One column of the table of a sweep.
struct SweepColumn {
  Table::Column title;
  /// What it says of a result; "-" where the result does not have it.
  std::function<std::string(const RunRecord& record)> cell;
  bool of_input = false;  ///< says what was asked for: stands there for points without a result too
  std::vector<std::string> tells = {};  ///< configuration paths whose values the cell says
};

/// How tables of sweeps show the results of a kind of experiment.
struct TableView {
  /// After that of the name: what was run, its time first among the results, then what people
  /// compare.
  std::vector<SweepColumn> columns;
  /// Metrics that a first question to the store would ask for; the last is what it ranks by.
  std::string question;
  std::string setting;  ///< a what-if to try next, as of `--set`
  std::string remark;   ///< what has to be known to read the table; may be empty
};

/// A column with a metric and its unit, a share in percent, a label; "-" where there is none.
SweepColumn metric_column(const char* title, const char* metric, const char* unit);
SweepColumn percent_column(const char* title, const char* metric);
SweepColumn label_column(const char* title, const char* label);
/// The interval of a time.
SweepColumn interval_column(const char* metric);
/// The time of a result, or in few words why there is none.
SweepColumn time_column(const char* title, const char* metric, const char* unit = "s");
/// The number format of what was run.
SweepColumn precision_column(const char* precision);
/// How the reason of a point begins whose values cannot stand together.
inline constexpr const char* kCannotBe = "cannot be";

}  // namespace orrery
