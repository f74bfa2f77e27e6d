// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// What a graph that comes from elsewhere is made of.
struct GraphFacts {
  static constexpr std::size_t kKinds = static_cast<std::size_t>(NodeKind::kReceive) + 1;

  std::uint64_t nodes = 0, dependencies = 0;
  std::array<std::uint64_t, kKinds> by_kind{};  ///< nodes by NodeKind
  std::array<Picoseconds, kKinds> recorded{};   ///< sums of their recorded times
  std::uint64_t untimed = 0;                    ///< kernels and host operators without one
  double flops = 0, bytes = 0;  ///< FLOPs and bytes of kernels, as far as files tell
  struct Transfers {
    std::uint64_t count = 0;
    double bytes = 0;  ///< sum of Transfer::bytes
  };
  std::map<std::string, Transfers> transfers;  ///< transfers by kind
  Picoseconds critical_path = 0;               ///< longest chain of recorded times
  std::uint64_t critical_nodes = 0;            ///< nodes on it
  std::vector<std::string> streams;

  GraphFacts& operator+=(const GraphFacts& other);
};

GraphFacts graph_facts(const ImportedGraph& graph);

/// The nodes of the longest chain of recorded times, in its order.
std::vector<NodeId> critical_path(const ImportedGraph& graph);

/// What a node takes as its file has recorded; 0: it does not tell.
Picoseconds recorded_time(const ImportedGraph& graph, NodeId node);

}  // namespace orrery
