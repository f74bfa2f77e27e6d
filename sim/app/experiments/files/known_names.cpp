// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/files/known_names.h"

#include <fmt/core.h>
#include <algorithm>
#include <utility>

#include "models/topologies/fabric.h"
#include "sim/config/leaf.h"
#include "sim/config/place.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {

void complain(config::Diagnostics& diagnostics, const config::Node& node,
              const std::vector<std::string>& keys, std::string message, config::Advice advice) {
  const config::Place place = config::place_of(node, keys);
  diagnostics.error(place.where, place.length, std::move(message), std::move(advice.suggestion),
                    std::move(advice.notes));
}

void miss_key(config::Diagnostics& diagnostics, const config::Node& node, const std::string& key,
              std::vector<std::string> notes) {
  complain(diagnostics, node, {"experiment"}, "this experiment needs the key '" + key + "'",
           {{}, std::move(notes)});
}

bool is_written(const config::Node& node, std::string_view key) {
  const config::Node* value = node.find(key);
  return value != nullptr && !value->is_null() &&
         value->origin().kind != config::Origin::Kind::kDefault;
}

void check_name(const NamedKey& key, const std::string& name, const std::vector<std::string>& known,
                const config::Node& node, config::Diagnostics& diagnostics) {
  if (std::ranges::find(known, name) != known.end()) return;
  complain(diagnostics, node, {key.path}, fmt::format("unknown {} '{}'", key.what, name),
           {nearest_name(name, known), {"there are: " + comma_joined(known)}});
}

void check_topologies(const SystemConfig& system, int nodes, const std::string& path,
                      const config::Node& node, config::Diagnostics& diagnostics) {
  if (nodes > 1)
    check_name({path + ".scale_out.kind", "scale-out topology"}, system.scale_out.kind,
               names_of<ScaleOutRegistry>(), node, diagnostics);
}

}  // namespace orrery
