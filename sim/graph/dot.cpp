// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/dot.h"

#include <boost/graph/graphviz.hpp>
#include <map>
#include <ostream>
#include <utility>

#include "sim/graph/operator_graph_boost.h"
#include "sim/graph/topology_boost.h"
#include "sim/units/text.h"

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

void write_dot(std::ostream& out, const Topology& topology, const std::string& name) {
  const Topology::Graph& graph = topology.graph();
  struct Parallel {
    int links = 0;
    BytesPerSecond capacity;
  };
  // By the lower and the higher end; the links of one way stand for both.
  std::map<std::pair<Topology::VertexId, Topology::VertexId>, Parallel> edges;
  for (auto [link, end] = boost::edges(graph); link != end; ++link) {
    const auto from = boost::source(*link, graph), to = boost::target(*link, graph);
    if (from > to) continue;
    Parallel& edge = edges[{from, to}];
    ++edge.links;
    edge.capacity = graph[*link].capacity;
  }
  out << "graph " << boost::escape_dot_string(name) << " {\n";
  for (auto [vertex, end] = boost::vertices(graph); vertex != end; ++vertex) {
    out << *vertex << " [label=" << boost::escape_dot_string(topology.vertex_name(*vertex))
        << ", shape=" << (graph[*vertex].rank >= 0 ? "box" : "ellipse") << "];\n";
  }
  for (const auto& [ends, edge] : edges) {
    const std::string count = edge.links == 1 ? "" : std::to_string(edge.links) + " x ";
    out << ends.first << "--" << ends.second
        << " [label=" << boost::escape_dot_string(count + print(edge.capacity)) << "];\n";
  }
  out << "}\n";
}

}  // namespace orrery
