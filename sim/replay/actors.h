// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/program.h"

namespace orrery {

/// Who plays in a replay: a role for all its ranks, or one of them.
struct Actor {
  std::uint32_t role = 0;
  int rank = -1;  ///< -1: all ranks of the role
};

/// The roles in order, or each rank of each.
std::vector<Actor> actors_of(const Program& program, bool unfolded);

}  // namespace orrery
