// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/play.h"
#include "sim/results/metric_table.h"
#include "sim/results/run_record.h"

namespace orrery {

class Timeline;

struct SimulateOptions {
  std::string trace;                  ///< file for a Perfetto timeline; empty: none
  TileMemo* tiles = nullptr;          ///< results of tiles, looked up and kept there; null: nowhere
  ReplayStandIn* stand_in = nullptr;  ///< stands in for the replay; null: it is done
  bool configuration = true;          ///< the record has the configuration; else the caller has it
  /// A step that does not fit in memory is timed as well; its status stays.
  bool beyond_memory = false;
  /// Asked now and then by runs that take long; false ends one, which reports what was until then.
  /// @param all how many there will be; 0: not known. Null: nobody watches
  std::function<bool(std::size_t done, std::size_t all)> watch = nullptr;
  /// Hears what a user should know beside the result, in one line; null: nobody.
  std::function<void(const std::string& line)> warn = nullptr;
};

/// The resolved configuration of an experiment as records have it.
std::shared_ptr<const Configuration> configuration_of(const LoadedExperiment& loaded);

/// Runs one experiment. A point that does not fit, or that a dead link holds up, is a result too:
/// status kInfeasible with the reason.
/// @throws config::ConfigError for what only shows when the model is built.
RunRecord simulate(const LoadedExperiment& loaded, const SimulateOptions& options = {});

/// Writes a timeline, and warns where it lacks what a viewer would not take.
void close_timeline(Timeline& timeline, const SimulateOptions& options);

/// Says of a result why there is none: it does not fit, or a dead link holds it up.
void set_infeasible(RunRecord& record, std::string reason);

/// Adds a number, several, or a word, to a result.
void add_metric(RunRecord& record, const DeclaredMetric& metric, double value);
void add_list(RunRecord& record, const DeclaredMetric& metric, std::vector<double> values);
void add_label(RunRecord& record, const DeclaredMetric& metric, std::string text);

}  // namespace orrery
