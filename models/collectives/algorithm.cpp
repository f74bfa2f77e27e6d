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
      add(collective.rank(from), collective.rank(to), bytes);
    }
  }
}

StepCount operator-(StepCount a, StepCount b) {
  return {a.scale_up - b.scale_up,
          a.scale_out - b.scale_out,
          {a.links.scale_up - b.links.scale_up, a.links.scale_out - b.links.scale_out}};
}

bool Collective::spans_systems() const {
  return std::any_of(group.begin(), group.end(), [this](int rank) {
    return layout.system(rank) != layout.system(group.front());
  });
}

StepCount Collective::step(int from, int to) const {
  StepCount step = step_after({}, crosses(from, to));
  if (routes != nullptr) step.links = routes->beyond_shortest(rank(from), rank(to));
  return step;
}

}  // namespace orrery
