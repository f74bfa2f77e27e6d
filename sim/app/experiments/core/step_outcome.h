// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/experiments/core/components.h"
#include "sim/app/experiments/core/link_use.h"
#include "sim/app/pricing/pricing.h"
#include "sim/app/pricing/step_power.h"
#include "sim/replay/replay.h"

namespace orrery {

/// A step that was priced and replayed.
struct StepOutcome {
  PricedProgram priced;  ///< kernels at the clock of the power state
  ReplayResult replay;
  PowerUse power;
  std::vector<ComponentUse> components;
  MachineLinkUse links;
  std::vector<Picoseconds> steps;  ///< times of all steps, where ranks are not folded
};

/// Adds the times of the rank that ends last by activity (breakdown.*).
void add_breakdown(const TimeBreakdown& time, RunRecord& record);

}  // namespace orrery
