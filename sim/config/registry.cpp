// SPDX-License-Identifier: Apache-2.0
#include "sim/config/registry.h"

#include "sim/config/diagnostics.h"
#include "sim/units/spelling.h"

namespace orrery {

void refuse_name(const std::string& what, const std::string& name, const std::string& path,
                 const std::vector<std::string>& names) {
  std::string known;
  for (const std::string& other : names) known += (known.empty() ? "" : ", ") + other;
  throw config::KeyError(path, "unknown " + what + " '" + name + "'",
                         {nearest_name(name, names), {"there are: " + known}});
}

}  // namespace orrery
