// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/app/experiments/exit_codes.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/experiments/simulate.h"
#include "sim/results/run_record.h"
#include "sim/store/result_store.h"

namespace orrery {

/// A result and what its run took.
struct TimedRecord {
  RunRecord record;
  RunTimes times;
  std::vector<TileRow> tiles = {};  ///< played in a process of its own, to be stored
};

/// simulate(), with a stop-watch.
TimedRecord simulate_timed(const LoadedExperiment& loaded, const SimulateOptions& options = {});

/// simulate() in a process of its own; a failure there is thrown here with its exit code.
/// @param known tile results that it may use; gains those that it played. May be null
/// @throws PointFailure
TimedRecord simulate_isolated(const LoadedExperiment& loaded,
                              std::vector<TileRow>* known = nullptr);

/// The interface's JSON object, with the wall time of this run.
nlohmann::ordered_json to_json(const TimedRecord& run);

}  // namespace orrery
