// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/algorithm.h"

#include <algorithm>

namespace orrery {

bool Collective::spans_systems() const {
  return std::any_of(group.begin(), group.end(), [this](int rank) {
    return layout.system(rank) != layout.system(group.front());
  });
}

}  // namespace orrery
