// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/properties/random/experiments.h"

namespace orrery {

/// A law that a result broke.
struct Violation {
  std::string law;                   ///< "power stays below the cap"
  std::string what;                  ///< the figures
  std::vector<std::string> compare;  ///< assignments of the second experiment, if there is one
};

/// What became of an experiment.
struct Trial {
  enum class Outcome { kRan, kRefused, kInfeasible } outcome = Outcome::kRan;
  std::vector<Violation> violations;
};

/// Runs `laws`, which fills in the trial that it gets. Input that the program refuses makes the
/// trial a refused one; any other failure is a violation.
Trial tried(const std::function<void(Trial&)>& laws);

/// Runs an experiment and a few that differ from it in one figure, each in a process of its own,
/// and looks at every law that holds of them:
/// - it ends as a result, as infeasible with a reason, or refused by the configuration;
/// - parts of the step add up to it, energy is power times time, utilisations and shares of limits
///   and of links are at most 1, quantiles stand in order;
/// - in the steady state, average power stays below the cap of all packages;
/// - better hardware is not slower, more work and a dead link not faster;
/// - the memory of training steps keeps the laws of inspect_memory().
Trial try_experiment(const RandomExperiment& experiment, Draw& draw);

}  // namespace orrery
