// SPDX-License-Identifier: Apache-2.0
// A system of one rank: nothing to join.
#include <memory>
#include <stdexcept>
#include <string>

#include "models/topologies/fabric.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

class NoFabric : public Fabric {
 public:
  void append_route(int /*source*/, int /*destination*/, Route& /*route*/) const override {
    throw std::logic_error("a fabric of one rank has no routes");
  }
  void draw(Topology& /*topology*/) const override {}
};

std::unique_ptr<Fabric> build_none(const SystemConfig& /*system*/, const RankLayout& layout,
                                   Topology& /*topology*/) {
  if (layout.ranks_per_system != 1) {
    throw config::KeyError(
        std::vector<std::string>{"system.scale_up.kind", "system.accelerators"},
        "topology none is for systems of one rank, not " + std::to_string(layout.ranks_per_system));
  }
  return std::make_unique<NoFabric>();
}

const ScaleUpRegistry::Register registered_none("none", "a system of one rank: no links inside it",
                                                build_none);

}  // namespace
}  // namespace orrery
