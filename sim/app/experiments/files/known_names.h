// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/config/node.h"
#include "sim/machine/system_config.h"

namespace orrery {

/// A key whose value is one of a list of names.
struct NamedKey {
  std::string path;  ///< path of the key: "serving.router"
  std::string what;  ///< kind of thing that is named: "router"
};

/// Complains of a name that is none of `known`, where `node` has it.
void check_name(const NamedKey& key, const std::string& name, const std::vector<std::string>& known,
                const config::Node& node, config::Diagnostics& diagnostics);

/// Complains of topologies that do not exist, of `nodes` copies of the system at `path`.
void check_topologies(const SystemConfig& system, int nodes, const std::string& path,
                      const config::Node& node, config::Diagnostics& diagnostics);

/// The names of a registry, behind `first`.
template <class Registry>
std::vector<std::string> names_of(std::vector<std::string> first = {}) {
  for (const auto& [name, item] : Registry::items()) first.push_back(name);
  return first;
}

}  // namespace orrery
