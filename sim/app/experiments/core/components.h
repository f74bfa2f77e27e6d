// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/program.h"
#include "sim/graph/topology.h"
#include "sim/replay/replay.h"
#include "sim/results/run_record.h"

namespace orrery {

/// What every node did: share of the run in which its accelerators ran kernels, and bytes that left
/// them. Ranks that were folded into a role did what the role did.
std::vector<ComponentUse> component_use(const Topology& topology, const Program& program,
                                        const ReplayResult& replay);

}  // namespace orrery
