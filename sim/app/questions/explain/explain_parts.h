// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/results/answer.h"

namespace orrery {

/// What `explain --json` prints, for people: what limits the run first, then what it is made of and
/// which inputs had no effect.
/// @param configuration whether every value with its origin comes last
Answer explanation_parts(const nlohmann::ordered_json& explanation, bool configuration);

}  // namespace orrery
