// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/program.h"
#include "sim/graph/topology.h"
#include "sim/replay/replay.h"
#include "sim/results/run_record.h"

namespace orrery {

/// All that a replay and its counters depend on.
struct ReplayInputs {
  const Topology& topology;
  const Program& program;
  const Costs& costs;
  SlowdownModel* slowdowns = nullptr;  ///< null: kernels take no notice of transfers
};

/// Stands in for the replay where an experiment is only tried; see Trials in effects.h.
class ReplayStandIn {
 public:
  virtual ~ReplayStandIn() = default;
  virtual ReplayResult replay(const ReplayInputs& inputs) = 0;
};

struct Played {
  ReplayResult replay;
  std::vector<ComponentUse> components;  ///< none where something stood in for the replay
};

/// Makes the machine stand, replays the program on it and reads its counters.
/// @param timeline, stand_in may be null
/// @throws as replay() and elaborate()
Played play(const ReplayInputs& inputs, Timeline* timeline, ReplayStandIn* stand_in);

}  // namespace orrery
