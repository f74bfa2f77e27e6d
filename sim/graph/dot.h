// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "sim/graph/operator_graph.h"

namespace orrery {

/// Writes the graph in Graphviz's language: an edge from each operator to those that wait for it;
/// boxes compute, ellipses communicate; the stream stands behind the name.
void write_dot(std::ostream& out, const OperatorGraph& graph, const std::string& name);

}  // namespace orrery
