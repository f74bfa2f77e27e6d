// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/kernels/tiles/tile_model.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/experiments/play.h"
#include "sim/results/run_record.h"

namespace orrery {

struct SimulateOptions {
  std::string trace;                  ///< file for a Perfetto timeline; empty: none
  TileMemo* tiles = nullptr;          ///< where tile results are looked up and kept; null: nowhere
  ReplayStandIn* stand_in = nullptr;  ///< of the replay; null: it is done
};

/// Runs one experiment. A point that does not fit, or that a dead link holds up, is a result too:
/// status kInfeasible with the reason.
/// @throws config::ConfigError for what only shows when the model is built.
RunRecord simulate(const LoadedExperiment& loaded, const SimulateOptions& options = {});

/// Adds a metric; its unit comes from the table of metrics.
/// @throws std::logic_error for a name that the table does not have.
void add_metric(RunRecord& record, std::string_view name, double value);

}  // namespace orrery
