// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/graphs/graph_times.h"
#include "sim/app/experiments/graphs/replay.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/graph/imported_graph.h"
#include "sim/graph/program.h"
#include "sim/machine/kernel_model.h"
#include "sim/replay/graph_replay.h"

namespace orrery {

/// Parts of the chain of nodes that a run takes as long as.
struct ChainTimes {
  Picoseconds host = 0, gemm = 0, kernels = 0, communication = 0;

  void add(const ImportedGraph& graph, NodeId node, Picoseconds time);
};

/// An imported run on a machine: what it runs, at which prices, and how the replay went.
struct ReplayedGraphs {
  Program program;      ///< kernels, transfers and a role for each rank, without blocks
  Program shapes;       ///< the kernels without their scale
  StepOutcome outcome;  ///< result and prices; components and steps stay empty
  GraphReplayResult replay;
  ChainTimes chain;
  GraphTimes::Summary summary;  ///< kernels and host operators of the rank that ends last
};

/// Prices the graphs of a run on the machine of the experiment and replays them at the clock of the
/// power state. Kernels that the model prices follow the clock and are slowed by transfers beside
/// them; recorded times and those of nameplates stay.
/// @throws config::ConfigError for graphs that do not go together
ReplayedGraphs replay_graphs(const ReplayExperiment& experiment, const ImportedRun& run,
                             const KernelModel& model, const SimulateOptions& options);

}  // namespace orrery
