// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

namespace orrery {

/// What `explain --json` prints, for people: what limits the run first, then what it is made of and
/// which inputs had no effect.
/// @param configuration whether every value with its origin comes last
void print_explanation(const nlohmann::ordered_json& explanation, bool configuration,
                       std::ostream& out);

}  // namespace orrery
