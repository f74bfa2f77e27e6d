// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/app/questions/points/stored_points.h"
#include "sim/results/answer.h"

namespace orrery {

/// What each input that points of a store differ in does to a metric, all others being equal; the
/// largest first.
/// @throws UsageError for no such metric
Answer swept_inputs(const StoreChoice& choice, const std::string& metric);

}  // namespace orrery
