// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "sim/graph/operator_graph.h"
#include "sim/graph/topology.h"

namespace orrery {

/// Writes the graph in Graphviz's language: an edge from each operator to those that wait for it;
/// boxes compute, ellipses communicate; the stream stands behind the name.
void write_dot(std::ostream& out, const OperatorGraph& graph, const std::string& name);

/// Writes the drawn links of a topology: an edge for all parallel links between two vertices, with
/// their number and the bandwidth of one; boxes are ranks, ellipses switches.
void write_dot(std::ostream& out, const Topology& topology, const std::string& name);

}  // namespace orrery
