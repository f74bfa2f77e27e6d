// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/graph/adjacency_list.hpp>

#include "sim/graph/operator_graph.h"

namespace orrery {

struct OperatorGraph::Graph
    : boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Operator> {};

}  // namespace orrery
