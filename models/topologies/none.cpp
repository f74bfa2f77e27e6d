// SPDX-License-Identifier: Apache-2.0
// A system of one rank: nothing to join.
#include <fmt/core.h>

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

struct NoTopology final : ScaleUpTopology {
  static const config::Schema<NoTopology>& schema() {
    static const config::Schema<NoTopology> schema("none", "a system of one rank");
    return schema;
  }
  bool has_links() const override { return false; }
  std::unique_ptr<Fabric> build(const SystemConfig& /*system*/, const RankLayout& layout,
                                Topology& /*topology*/) const override {
    if (layout.ranks_per_system == 1) return std::make_unique<NoFabric>();
    throw config::KeyError(
        {"system.scale_up.kind", "system.accelerators"},
        fmt::format("topology none is for systems of one rank, not {}", layout.ranks_per_system));
  }
};

const RegisterScaleUp<NoTopology> registered_none("none",
                                                  "a system of one rank: no links inside it");

}  // namespace
}  // namespace orrery
