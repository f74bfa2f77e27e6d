// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/properties/random/laws.h"

namespace orrery {

/// Runs an experiment, and again on better hardware: one figure of the accelerator (a clock, the
/// units, a rate, a bandwidth, a capacity, links) times 1.25 or 2. It must not be slower by more
/// than rounding, unless it is as fast where no power cap holds.
/// @param draw which figure, by which factor
Trial try_better_hardware(const RandomExperiment& experiment, Draw& draw);

}  // namespace orrery
