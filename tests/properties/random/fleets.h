// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/properties/random/laws.h"

namespace orrery {

/// A fleet of like replicas of a dense model, with Poisson arrivals at 5 to 120 % of what its
/// replicas answer at most.
/// @throws config::ConfigError for one that cannot be
RandomExperiment draw_fleet(Draw& draw);

/// Runs a fleet and looks at the laws of served requests:
/// - all requests are answered, throughput is requests over time, energy is power times time,
///   quantiles stand in order, goodput is at most what arrives;
/// - in runs with a steady window, routers that know loads have mean and p99 TTFT not above random
/// ones, and if replicas run
///   iterations less than half of the time not above round robin: over 10 seeds, the 95 % interval
///   of the difference of pairs includes zero or lies below. A break counts if 20 and then 60
///   further seeds confirm it.
Trial try_fleet(const RandomExperiment& experiment);

}  // namespace orrery
