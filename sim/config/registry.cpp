// SPDX-License-Identifier: Apache-2.0
#include "sim/config/registry.h"

#include <fmt/core.h>

#include "sim/config/diagnostics.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {

void refuse_name(const std::string& what, const std::string& name, const std::string& path,
                 const std::vector<std::string>& names) {
  throw config::KeyError(path, fmt::format("unknown {} '{}'", what, name),
                         {nearest_name(name, names), {"there are: " + comma_joined(names)}});
}

}  // namespace orrery
