// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/actors.h"

namespace orrery {

std::vector<Actor> actors_of(const Program& program, bool unfolded) {
  std::vector<Actor> actors;
  for (std::uint32_t role = 0; role < program.roles.size(); ++role) {
    if (!unfolded) {
      actors.push_back({role, -1});
      continue;
    }
    for (const int rank : program.roles[role].ranks) actors.push_back({role, rank});
  }
  return actors;
}

}  // namespace orrery
