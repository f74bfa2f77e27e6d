// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <stack>
#include <vector>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// Nodes that wait for a node.
inline std::span<const NodeId> next_of(const ImportedGraph& graph, NodeId node) {
  const std::uint32_t first = graph.nodes[node].first_next;
  return {graph.next.data() + first, graph.nodes[node + 1].first_next - first};
}

/// What nodes wait for, as ImportedGraph::next has what waits for them.
class Earlier {
 public:
  explicit Earlier(const ImportedGraph& graph)
      : first_(graph.size() + 1, 0), nodes_(graph.next.size()) {
    for (NodeId node = 0; node < graph.size(); ++node)
      first_[node + 1] = first_[node] + graph.nodes[node].waits;
    std::vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
    for (NodeId node = 0; node < graph.size(); ++node)
      for (const NodeId next : next_of(graph, node)) nodes_[at[next]++] = node;
  }
  /// In the order of the file.
  std::span<const NodeId> of(NodeId node) const {
    return {nodes_.data() + first_[node], first_[node + 1] - first_[node]};
  }

 private:
  std::vector<std::uint32_t> first_;  ///< index in nodes_, by node
  std::vector<NodeId> nodes_;
};

/// Visits each node after all that it waits for; those on cycles and behind them are left out.
/// @tparam Ready which of several that are ready is next
template <class Ready = std::stack<NodeId, std::vector<NodeId>>, class Visit>
void in_order(const ImportedGraph& graph, const Visit& visit) {
  std::vector<std::uint32_t> waits(graph.size());
  Ready ready;
  for (NodeId node = 0; node < graph.size(); ++node) {
    waits[node] = graph.nodes[node].waits;
    if (waits[node] == 0) ready.push(node);
  }
  while (!ready.empty()) {
    const NodeId node = ready.top();
    ready.pop();
    visit(node);
    for (const NodeId next : next_of(graph, node))
      if (--waits[next] == 0) ready.push(next);
  }
}

}  // namespace orrery
