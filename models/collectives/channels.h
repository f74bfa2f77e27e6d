// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "models/collectives/algorithm.h"

namespace orrery {

/// How NCCL uses all NICs of a node: as many rings or trees ("channels") as there are NICs, each
/// carrying an equal share and entering every system at another member.
class Channels {
 public:
  explicit Channels(const Collective& collective);

  /// 1 within one system, where spraying already uses all links; otherwise the members of the
  /// smallest part, each of which has a NIC.
  int count() const { return count_; }
  int systems() const { return static_cast<int>(parts_.size()); }
  /// Members in one part of the group, in the order in which a channel visits them: by rank, from
  /// its entry on.
  std::vector<int> visit(int system, int channel) const;
  /// Members of the largest part.
  int largest_part() const;

 private:
  std::vector<std::vector<int>> parts_;  // members by system, in rank order
  int count_ = 1;
};

}  // namespace orrery
