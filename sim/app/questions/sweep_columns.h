// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/experiments/experiment.h"
#include "sim/results/run_record.h"
#include "sim/results/table.h"

namespace orrery {

/// One column of the table of a sweep.
struct SweepColumn {
  Table::Column title;
  /// What it says of a result; "-" where the result does not have it.
  std::string (*cell)(const Experiment& experiment, const RunRecord& record);
};

/// The columns of a kind of experiment, after that of the name: what was run, its time first among
/// the results, then what people compare.
const std::vector<SweepColumn>& sweep_columns(ExperimentKind kind);

/// The metrics of a kind that a first question to the store would ask for; the last is what it
/// ranks by.
std::string sweep_question(ExperimentKind kind);

}  // namespace orrery
