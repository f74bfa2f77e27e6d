// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/properties/random/laws.h"

namespace orrery {

/// A small fleet with bounds on its times.
RandomExperiment draw_capacity(Draw& draw);

/// The rate that `--find max_rate` gives keeps its bounds, and 1.2 times that rate does not.
Trial try_capacity(const RandomExperiment& fleet);

}  // namespace orrery
