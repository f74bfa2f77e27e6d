// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/costs.h"
#include "sim/graph/program.h"
#include "tests/bench/contest.h"

namespace orrery::bench {

/// Replays as one would with SystemC at first: each stream of each role is a module with an
/// SC_METHOD and an event of its own. Knows operators, waits and rendezvous, but neither links nor
/// where the time went.
struct NaiveResult {
  Picoseconds end = 0;
  double seconds = 0;  ///< CPU time without building the modules
};
NaiveResult naive_replay(const Program& program, const Costs& costs);

}  // namespace orrery::bench
