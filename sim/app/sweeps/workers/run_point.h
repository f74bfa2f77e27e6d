// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/results/run_record.h"
#include "sim/store/result_store.h"

namespace orrery {

struct TimedRecord {
  RunRecord record;
  RunTimes times;
  std::vector<TileRow> tiles = {};  ///< played in a process of its own, to be stored
};

/// From one process to another: all but the configuration, which both have.
std::string to_bytes(const TimedRecord& run);
TimedRecord timed_record(std::string_view bytes);

/// Here and now, of a run that begins.
RunTimes times_now();

/// simulate(), with a stop-watch.
TimedRecord simulate_timed(const LoadedExperiment& loaded, const SimulateOptions& options = {});

/// simulate() in a process of its own; a failure there is thrown here with its exit code.
/// @throws PointFailure
TimedRecord simulate_isolated(const LoadedExperiment& loaded, const SimulateOptions& options = {});

/// The interface's JSON object, with the wall time of this run.
nlohmann::ordered_json to_json(const TimedRecord& run);

}  // namespace orrery
