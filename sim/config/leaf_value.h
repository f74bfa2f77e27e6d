// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/config/output.h"

namespace orrery::config {

/// One scalar as flatten() lists it. @throws UnitError if it is no such value
Leaf leaf_of(const Node& scalar, const Type& type, const std::string& path);

/// The same as canonical() has it. @throws UnitError
nlohmann::ordered_json canonical_leaf(const Node& scalar, const Type& type);

}  // namespace orrery::config
