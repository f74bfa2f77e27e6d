// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/app/pricing/part_pricer.h"
#include "sim/graph/costs.h"
#include "sim/graph/program.h"

namespace orrery {

/// What the time of a step rests on, and how much longer it may take.
struct StepTrust {
  std::map<Provenance, double> seconds;  ///< seconds of kernels and transfers by what they rest on
  std::vector<double> factors;           ///< how many times longer it takes, by draw (draws.h)
};

/// The trust of a step whose kernels and collectives follow each other, as those of inference do on
/// each rank.
StepTrust step_trust(const StepMachine& machine, const Program& program, std::int64_t seed);

}  // namespace orrery
