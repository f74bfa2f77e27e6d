// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/operator_graph.h"

#include <stdexcept>
#include <utility>

#include "sim/graph/operator_graph_boost.h"

namespace orrery {

OperatorGraph::OperatorGraph() : graph_(std::make_unique<Graph>()) {}

OperatorGraph::OperatorGraph(const OperatorGraph& other)
    : graph_(std::make_unique<Graph>(*other.graph_)) {}

OperatorGraph::OperatorGraph(OperatorGraph&& other) noexcept = default;

OperatorGraph& OperatorGraph::operator=(const OperatorGraph& other) {
  return *this = OperatorGraph(other);
}

OperatorGraph& OperatorGraph::operator=(OperatorGraph&& other) noexcept = default;

OperatorGraph::~OperatorGraph() = default;

OperatorId OperatorGraph::add(const Operator& op) {
  return static_cast<OperatorId>(boost::add_vertex(op, *graph_));
}

void OperatorGraph::depends(OperatorId later, OperatorId earlier) {
  if (later >= size() || earlier >= size()) {
    throw std::out_of_range("dependency of an operator that is not in the graph");
  }
  boost::add_edge(earlier, later, *graph_);
}

std::size_t OperatorGraph::size() const { return boost::num_vertices(*graph_); }

const Operator& OperatorGraph::operator[](OperatorId id) const { return (*graph_)[id]; }

}  // namespace orrery
