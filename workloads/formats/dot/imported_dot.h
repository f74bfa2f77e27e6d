// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// Writes a graph that was read in Graphviz's language: boxes compute, ellipses communicate, the
/// name behind "@" is the stream.
void write_dot(const ImportedGraph& graph, const std::string& name, std::ostream& out);

}  // namespace orrery
