// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace orrery {

/// The path of a group: "serving.fleet.0".
std::string group_path(std::size_t group);

}  // namespace orrery
