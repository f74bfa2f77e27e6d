// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "sim/app/experiments/core/link_use.h"
#include "sim/app/pricing/pricing.h"
#include "sim/app/pricing/step_power.h"
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
  const Costs& costs;  ///< costs of kernels before the power cap slows them, and of transfers
  SlowdownModel* slowdowns = nullptr;  ///< null: kernels take no notice of transfers
  std::vector<double> power = {};      ///< power_figures(); none where no cap acts
  std::vector<double> ranks = {};      ///< rank_figures(); none where ranks are folded
};

struct ReplayOutcome {
  ReplayResult replay;
  PowerUse power;
  std::vector<KernelCost> kernels;      ///< costs of kernels at the clock that keeps the cap
  std::vector<Picoseconds> steps = {};  ///< times of all steps, where ranks are not folded
};

/// Replays the program of some inputs with these slowdowns, which may be null.
using ReplayFunction = std::function<ReplayOutcome(SlowdownModel*)>;

/// Stands in for the replay where an experiment is only tried; see Trials in effects.h.
class ReplayStandIn {
 public:
  virtual ~ReplayStandIn() = default;
  virtual ReplayOutcome replay(const ReplayInputs& inputs, const ReplayFunction& replayer) = 0;
  /// Where replays put what operators wait for; null: nowhere.
  virtual CriticalPath* path() { return nullptr; }
};

struct Played {
  ReplayOutcome outcome;
  std::vector<ComponentUse> components;  ///< none where something stood in for the replay
};

/// "system0/node1" of "system0/node1/accelerator3/die0".
std::string_view node_of(std::string_view rank);

/// Replays the program and reads what the nodes did.
/// @param stand_in may be null
/// @throws as replay()
Played play(const ReplayInputs& inputs, const ReplayFunction& replayer, ReplayStandIn* stand_in);

/// A step that was priced and replayed.
struct StepOutcome {
  PricedProgram priced;  ///< kernels at the clock of the power state
  ReplayResult replay;
  PowerUse power;
  std::vector<ComponentUse> components;
  MachineLinkUse links;
  std::vector<Picoseconds> steps;  ///< times of all steps, where ranks are not folded

  const RoleResult& last_role() const {
    return replay.roles[static_cast<std::size_t>(replay.last_role)];
  }
};

/// Adds the times of the rank that ends last by activity (breakdown.*).
void add_breakdown(const TimeBreakdown& time, RunRecord& record);

}  // namespace orrery
