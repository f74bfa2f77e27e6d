// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <string>

#include "sim/graph/topology.h"

namespace orrery {

struct Topology::Graph : boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                               Topology::Vertex, Topology::Link> {};

using LinkId = Topology::Graph::edge_descriptor;

/// What the link is made of.
LinkKind link_kind(const Topology& topology, LinkId link);
/// A name such as "system0/node1/accelerator3->system0/nvswitch7".
std::string link_name(const Topology& topology, LinkId link);

}  // namespace orrery
