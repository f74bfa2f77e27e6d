// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/algorithm.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace orrery {

void FlowSink::exchange(std::span<const int> group, Bytes bytes) {
  for (const int source : group) {
    for (const int destination : group) {
      if (source != destination) add(source, destination, bytes);
    }
  }
}

void FlowSink::exchange_parts(const Collective& collective) {
  const int n = collective.size();
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      const Bytes bytes = collective.between(from, to);
      if (from == to || bytes.base() == 0) continue;
      add(collective.group[static_cast<std::size_t>(from)],
          collective.group[static_cast<std::size_t>(to)], bytes);
    }
  }
}

StepCount longer(StepCount a, StepCount b) {
  const bool first = std::tie(a.scale_out, a.scale_up) >= std::tie(b.scale_out, b.scale_up);
  return first ? a : b;
}

StepCount step_after(StepCount chain, bool between_systems) {
  ++(between_systems ? chain.scale_out : chain.scale_up);
  return chain;
}

bool Collective::spans_systems() const {
  return std::any_of(group.begin(), group.end(), [this](int rank) {
    return layout.system(rank) != layout.system(group.front());
  });
}

Bytes Collective::between(int from, int to) const {
  return pair_bytes[static_cast<std::size_t>(from) * group.size() + static_cast<std::size_t>(to)];
}

bool Collective::crosses(int member, int other) const {
  return layout.system(group[static_cast<std::size_t>(member)]) !=
         layout.system(group[static_cast<std::size_t>(other)]);
}

}  // namespace orrery
