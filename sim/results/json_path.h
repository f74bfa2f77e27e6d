// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace orrery {

/// The value at a dotted path, list items by their index; null if there is none.
nlohmann::ordered_json* value_at(nlohmann::ordered_json& json, std::string_view path);

}  // namespace orrery
