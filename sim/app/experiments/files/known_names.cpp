// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/files/known_names.h"

#include <algorithm>

#include "models/topologies/fabric.h"
#include "sim/config/leaf.h"
#include "sim/config/place.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {

void check_name(const NamedKey& key, const std::string& name, const std::vector<std::string>& known,
                const config::Node& node, config::Diagnostics& diagnostics) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const config::Place place = config::place_of(node, {key.path});
  diagnostics.error(place.where, place.length, "unknown " + key.what + " '" + name + "'",
                    nearest_name(name, known), {"there are: " + comma_joined(known)});
}

void check_topologies(const SystemConfig& system, int nodes, const std::string& path,
                      const config::Node& node, config::Diagnostics& diagnostics) {
  if (nodes > 1)
    check_name({path + ".scale_out.kind", "scale-out topology"}, system.scale_out.kind,
               names_of<ScaleOutRegistry>(), node, diagnostics);
}

}  // namespace orrery
