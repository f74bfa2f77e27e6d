// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/results/answer.h"

namespace orrery {

/// `orrery run EXPERIMENT --find WHAT --slo BOUNDS`: the capacity of a served fleet.
/// @param what max_rate or instances
/// @param slo "ttft_p99=2s,tpot_p99=50ms", over those of the experiment; may be empty
/// @throws UsageError, config::ConfigError
Answer find_answer(const std::string& file, std::vector<std::string> settings,
                   const std::string& what, const std::string& slo);

}  // namespace orrery
