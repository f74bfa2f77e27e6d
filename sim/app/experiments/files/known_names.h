// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/config/node.h"
#include "sim/machine/system_config.h"

namespace orrery {

/// Finds fault with what was written of the keys, or with what holds them.
void complain(config::Diagnostics& diagnostics, const config::Node& node,
              const std::vector<std::string>& keys, std::string message,
              config::Advice advice = {});

/// Complains of a key that an experiment needs and does not have.
void miss_key(config::Diagnostics& diagnostics, const config::Node& node, const std::string& key,
              std::vector<std::string> notes = {});

/// Whether a user wrote a value of the key.
bool is_written(const config::Node& node, std::string_view key);

/// A note for who has to name a model.
inline constexpr const char* kModelNote =
    "a name of `orrery describe models`, a path, or {hf: path of a config.json}";

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
