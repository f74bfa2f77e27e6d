// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/algorithm.h"

#include <algorithm>

namespace orrery {

void FlowSink::exchange(std::span<const int> group, Bytes bytes) {
  for (const int source : group) {
    for (const int destination : group) {
      if (source != destination) add(source, destination, bytes);
    }
  }
}

bool Collective::spans_systems() const {
  return std::any_of(group.begin(), group.end(), [this](int rank) {
    return layout.system(rank) != layout.system(group.front());
  });
}

}  // namespace orrery
