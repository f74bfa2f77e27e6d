// SPDX-License-Identifier: Apache-2.0
// Any graph of packages and switches, as configured: for machines that no other kind describes, and
// for those read from a file of NCCL.
#include <memory>
#include <vector>

#include "models/topologies/graph_fabric.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

struct GraphTopology final : WiredTopology {
  static const config::Schema<GraphTopology>& schema() {
    static const auto schema =
        config::Schema<GraphTopology>("graph", "any graph of accelerators and switches")
            .required("wires",
                      static_cast<std::vector<WireConfig> GraphTopology::*>(&WiredTopology::wires),
                      "links between packages and switches");
    return schema;
  }

  bool links_hosts() const override { return true; }
  std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                Topology& topology) const override {
    return build_graph(system.name, layout, configured_graph(wires, system, layout), topology);
  }
};

const RegisterScaleUp<GraphTopology> registered_graph(
    "graph", "any graph of accelerators and switches, sprayed over all shortest paths");

}  // namespace
}  // namespace orrery
