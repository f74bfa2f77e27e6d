// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/operator_graph.h"

#include <stdexcept>
#include <utility>

namespace orrery {

OperatorId OperatorGraph::add(const Operator& op) {
  return static_cast<OperatorId>(boost::add_vertex(op, graph_));
}

void OperatorGraph::depends(OperatorId later, OperatorId earlier) {
  if (later >= size() || earlier >= size()) {
    throw std::out_of_range("dependency of an operator that is not in the graph");
  }
  boost::add_edge(earlier, later, graph_);
}

std::size_t OperatorGraph::size() const { return boost::num_vertices(graph_); }

}  // namespace orrery
