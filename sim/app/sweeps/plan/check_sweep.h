// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/sweeps/plan/sweep.h"

namespace orrery {

/// Tries every value of every axis once, the ends of those that are made, every condition, and what
/// objectives and `choose` name. What cannot stand together is found when a point runs.
/// @throws config::ConfigError with each mistake once; also where no point at all can be
void check_sweep(const Sweep& sweep);

/// @throws config::ConfigError where the first places, of a small sweep all, show that rules of
/// `where` exclude each
void require_points(const Sweep& sweep);
/// Says where the rules stand that exclude all points. @throws config::ConfigError
[[noreturn]] void refuse_rules(const Sweep& sweep);

}  // namespace orrery
