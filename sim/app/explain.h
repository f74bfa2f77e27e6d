// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/experiment.h"

namespace orrery {

/// Configuration paths that were written by the user or stand in the library, but do not change the
/// prediction: keys that this kind of experiment never reads, and hardware values that change no
/// price, memory or energy when they are doubled.
std::vector<std::string> inputs_without_effect(const LoadedExperiment& loaded);

}  // namespace orrery
