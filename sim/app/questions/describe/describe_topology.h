// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/machine/system_config.h"
#include "sim/results/answer.h"

namespace orrery {

/// The links of `copies` of a system: chips and the ports they use, links and bandwidth by kind,
/// bisection, diameter, shortest paths.
/// @throws config::ConfigError for sizes that do not fit together.
Answer describe_topology(const SystemConfig& system, int copies);

/// The physical links in the language of Graphviz, one edge for all between two vertices.
std::string topology_dot(const SystemConfig& system, int copies);

}  // namespace orrery
