// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/app/experiments/core/experiment.h"

namespace orrery {

/// What limits an experiment and which of its inputs have no effect: the object that
/// `explain --json` prints.
/// @throws as simulate()
nlohmann::ordered_json explain(const LoadedExperiment& loaded);

}  // namespace orrery
