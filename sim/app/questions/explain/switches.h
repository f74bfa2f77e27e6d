// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/app/experiments/core/experiment.h"

namespace orrery {

/// What every switch of the software of a step costs or saves on this very step: rows {switch,
/// value, other, step_time_s, change_s}, one for each other value that a switch may have, the
/// largest change first. Switches are what `software` has of words and flags; times and rates of
/// it are figures, not choices. A value that this step cannot have is left out. Empty for
/// experiments without software.
/// @param now seconds of the step as it is
/// @throws as simulate()
nlohmann::ordered_json switch_changes(const LoadedExperiment& loaded, double now);

}  // namespace orrery
