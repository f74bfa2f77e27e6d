// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/topology.h"
#include "sim/units/units.h"

namespace orrery {

struct SystemConfig;

/// Payload rates by bundle: line rates times the efficiency of the fabric. Links on a
/// package carry the same protocol as the scale-up fabric and share its efficiency.
/// @throws config::ConfigError where one is not positive.
std::vector<BytesPerSecond> payload_capacities(const SystemConfig& system,
                                               const Topology& topology);

}  // namespace orrery
