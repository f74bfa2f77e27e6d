// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/app/experiments/core/experiment.h"
#include "sim/results/answer.h"

namespace orrery {

/// What limits an experiment and which of its inputs have no effect: the object that
/// `explain --json` prints.
/// @throws as simulate()
nlohmann::ordered_json explain(const LoadedExperiment& loaded);

/// What `explain --json` prints, for people: what limits the run first, then what it is made of and
/// which inputs had no effect.
/// @param configuration whether every value with its origin comes last
Answer explanation_parts(const nlohmann::ordered_json& explanation, bool configuration);

}  // namespace orrery
