// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/graph/imported_graph.h"
#include "sim/units/time.h"

namespace orrery {

/// Why each node of a replay began when it did: the node of its rank that ended just then, what it
/// waits for or what its stream was busy with; and of a transfer what the last rank came from. From
/// the last node back this is the chain that the whole run takes as long as.
class GraphChain {
 public:
  void place(std::size_t rank, std::size_t nodes);
  /// A node of a rank begins as an earlier one ends.
  void follows(std::uint32_t rank, NodeId node, NodeId earlier) { causes_[rank][node] = earlier; }
  /// A transfer has taken so long since the last rank came.
  /// @param ranks, nodes who takes part, the last at the end
  void met(const std::vector<int>& ranks, const std::vector<NodeId>& nodes, Picoseconds time);

  /// Tells a node of the chain, and what it takes of the time.
  using Visit = std::function<void(std::uint32_t rank, NodeId node, Picoseconds time)>;
  /// Goes back from a node.
  /// @param duration what a node takes that is no transfer
  void walk(std::uint32_t rank, NodeId last,
            const std::function<Picoseconds(std::uint32_t, NodeId)>& duration,
            const Visit& visit) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kMet = std::uint32_t{1} << 31U;  ///< else it is no node

  /// A transfer: what the last rank came from.
  struct Meeting {
    std::uint32_t rank = 0;
    std::uint32_t cause = kNone;
    Picoseconds time = 0;
  };

  std::vector<std::vector<std::uint32_t>> causes_;  ///< nodes, kNone, or kMet and a place in met_
  std::vector<Meeting> met_;
};

}  // namespace orrery
