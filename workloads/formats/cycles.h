// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/imported_graph.h"

namespace orrery {

/// Nodes that wait for each other: the first waits for the last. The shortest such cycle; of those
/// of one length the one with the first node of the file. Empty: there is none.
/// Beyond 4,096 nodes that lie on cycles, the shortest through one of the first 4,096.
std::vector<NodeId> shortest_cycle(const ImportedGraph& graph);

/// For each of ImportedGraph::next whether it leads back to a node on the way to it, depth first
/// from each node in the order of the file. Without those no cycle is left.
std::vector<bool> dependencies_that_lead_back(const ImportedGraph& graph);

}  // namespace orrery
