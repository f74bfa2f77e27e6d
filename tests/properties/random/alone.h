// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/properties/random/laws.h"

namespace orrery {

/// One request on any system, engine and plan inside a node, whose host takes no time. Fusions are
/// written: serving has those that the times of engines' hosts were found with.
RandomExperiment draw_alone(Draw& draw);

/// A request alone takes the time of its steps: those of `inference` with the same engine.
Trial try_alone(const RandomExperiment& experiment);

}  // namespace orrery
