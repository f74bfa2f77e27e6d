// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/sweeps/plan/sweep.h"

namespace orrery {

/// Lays out the rows, rules and blocks of a sweep whose file is read. Values are not tried yet.
/// @throws config::ConfigError for axes that make no plan
void build_plan(Sweep& sweep);

}  // namespace orrery
