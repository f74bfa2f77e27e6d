// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/machine/system_config.h"
#include "sim/results/answer.h"

namespace orrery {

/// Systems side by side as their vendors publish them; totals are computed from the parts. With two
/// or more systems a column has the second over the first. The last column has what simulations use
/// where that differs, with footnotes that say why. Estimates of ours are marked.
///
/// As JSON, with numbers in the `unit` of their row: {"systems": [name], "parts": {label: [name]},
/// "rows": [{"label", "unit", "published": [number|null], "simulated": [...], "ratio",
/// "estimated": [bool]}], "differences": [{"system", "key", "published", "simulated", "reason",
/// "published_source", "simulated_source"}]}.
Answer describe_systems(const std::vector<SystemConfig>& systems);

}  // namespace orrery
