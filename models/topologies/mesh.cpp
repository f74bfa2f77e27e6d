// SPDX-License-Identifier: Apache-2.0
// Links from package to package, without switches.
//  - DGX-1: hybrid cube mesh of 8 V100, single and double links, 6 of 25 GB/s a GPU (NVIDIA DGX-1
//    with Tesla V100 system architecture white paper, WP-08437)
//  - MI300X: each of 8 to each other one, 7 links of 64 GB/s a GPU (AMD CDNA 3 white paper)
//
// Messages between packages without a link of their own are relayed, which NVLink does not do by
// itself: there a library copies through the GPU between, or goes over PCIe.
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "models/topologies/graph_fabric.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

SystemGraph full_mesh(const SystemConfig& system, const RankLayout& layout) {
  const PortConfig& port = system.accelerator.scale_up;
  const int peers = layout.ranks_per_system - 1;
  if (peers < 1 || port.links.value < 1 || port.links.value % peers != 0) {
    throw config::KeyError(
        {"system.scale_up.kind", "system.accelerators", "system.accelerator.scale_up.links"},
        fmt::format("the {} scale-up links of the accelerator cannot be shared "
                    "equally by {} others; give wires",
                    port.links.value, peers));
  }
  SystemGraph graph;
  graph.ranks = layout.ranks_per_system;
  for (int a = 0; a < graph.ranks; ++a) {
    for (int b = a + 1; b < graph.ranks; ++b) {
      graph.join({a, b, port.links.value / peers, port.bandwidth.value / port.links.value,
                  LinkKind::kScaleUp});
    }
  }
  return graph;
}

void check_ports(const SystemConfig& system, const SystemGraph& graph) {
  if (!graph.switches.empty()) {
    throw config::KeyError(
        {"system.scale_up.wires", "system.scale_up.kind"},
        fmt::format("a mesh has no switches; '{}' is no accelerator", graph.switches.front()),
        {{}, {"kind: graph has switches of any name"}});
  }
  std::vector<int> links(static_cast<std::size_t>(graph.ranks));
  for (const SystemGraph::Wire& wire : graph.wires) {
    links[static_cast<std::size_t>(wire.from)] += wire.links;
  }
  for (std::size_t rank = 0; rank < links.size(); ++rank) {
    if (links[rank] <= system.accelerator.scale_up.links.value) continue;
    throw config::KeyError("system.scale_up.wires",
                           fmt::format("accelerator{} has {} links, but {} ports", rank,
                                       links[rank], system.accelerator.scale_up.links.value));
  }
}

struct MeshTopology final : WiredTopology {
  static const config::Schema<MeshTopology>& schema() {
    static const auto schema =
        config::Schema<MeshTopology>("mesh", "links from package to package")
            .optional("wires",
                      static_cast<std::vector<WireConfig> MeshTopology::*>(&WiredTopology::wires),
                      "links between packages; by default a link between every two");
    return schema;
  }

  std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                Topology& topology) const override {
    require_one_die("mesh", layout);
    SystemGraph graph =
        wires.empty() ? full_mesh(system, layout) : configured_graph(wires, system, layout);
    check_ports(system, graph);
    return build_graph(system.name, layout, std::move(graph), topology);
  }
};

const RegisterScaleUp<MeshTopology> registered_mesh(
    "mesh", "links from package to package, by a table of wires or each to each other");

}  // namespace
}  // namespace orrery
