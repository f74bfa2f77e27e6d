// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/collective_config.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {

/// Adds the keys of an all_to_all with parts of different sizes and of the ends of a message.
config::Schema<CollectiveConfig> with_part_keys(config::Schema<CollectiveConfig> schema);

bool has_matrix(const CollectiveConfig& collective);

/// Reports what those keys do not fit: the kind, the machine, each other.
void check_parts(const CollectiveConfig& collective, const SystemConfig& system, int ranks,
                 const config::Node& node, config::Diagnostics& diagnostics);

/// The transfer of a checked collective on a machine of that many ranks, groups and parts included.
/// @throws config::ConfigError for a file with a matrix that cannot be read.
Transfer collective_transfer(const CollectiveConfig& collective, int ranks);

}  // namespace orrery
