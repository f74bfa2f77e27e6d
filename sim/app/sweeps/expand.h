// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/sweeps/sweep_config.h"

namespace orrery {

/// Adds the points of all cases to a sweep whose file is read. What is wrong with a value is found
/// once, and what cannot stand together when a point runs.
/// @throws config::ConfigError with each mistake once
void expand(Sweep& sweep);

}  // namespace orrery
