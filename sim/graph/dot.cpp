// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/dot.h"

#include <boost/graph/graphviz.hpp>
#include <ostream>

namespace orrery {

void write_dot(std::ostream& out, const OperatorGraph& graph, const std::string& name) {
  const auto vertex = [&graph](std::ostream& os, OperatorGraph::Graph::vertex_descriptor v) {
    const Operator& op = graph.graph()[v];
    os << "[label=" << boost::escape_dot_string(op.name + " @" + std::to_string(op.stream))
       << ", shape=" << (op.kind == OperatorKind::kCompute ? "box" : "ellipse") << "]";
  };
  const auto edge = [](std::ostream&, const auto&) {};
  const auto whole = [&name](std::ostream& os) {
    os << "label=" << boost::escape_dot_string(name) << "\n";
  };
  boost::write_graphviz(out, graph.graph(), vertex, edge, whole);
}

}  // namespace orrery
