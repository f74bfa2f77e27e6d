// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "sim/app/experiments/core/experiment.h"
#include "sim/results/answer.h"

namespace orrery {

struct ScalingOptions {
  double share = 0.1;    ///< so much up and down
  std::size_t jobs = 0;  ///< processes; 0: one for each processor
};

/// What every number of an experiment does to a metric when it goes up and down by a share, all
/// others staying; the largest change for a change of the input first.
/// Whole numbers go to the nearest whole one, by one at least.
/// @throws UsageError for no such metric; as simulate()
Answer scaled_inputs(const LoadedExperiment& loaded, const std::string& metric,
                     const ScalingOptions& options);

}  // namespace orrery
