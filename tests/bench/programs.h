// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/costs.h"
#include "sim/graph/program.h"

namespace orrery::bench {

struct PricedProgram {
  Program program;
  Costs costs;
};

/// Roles in groups of eight; two streams; blocks of 40 operators with 1.5 dependencies each, every
/// eighth a rendezvous of the group that takes a latency. Each role has kernels of its own, of up
/// to 5 us.
PricedProgram rendezvous_program(int roles, int calls);

/// Nine pipeline stages, 1152 micro-batches through 14 layers of 48 operators each: 7 million
/// operators, a third of them collectives with bytes on links, and messages between the stages.
PricedProgram training_program(int micro_batches);

/// All roles alike, kernels only but for one collective of all: what a role costs in memory.
PricedProgram template_program(int roles, int calls);

}  // namespace orrery::bench
