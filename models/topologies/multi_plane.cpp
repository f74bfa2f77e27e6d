// SPDX-License-Identifier: Apache-2.0
// A multi-plane fat tree (DeepSeek-V3 insights, arXiv 2505.09343, section 5.1): every rail has a
// tree of its own, so that two tiers reach as many nodes as a spine has ports to leaves times those
// of a leaf. Traffic for another plane changes planes inside its node.
#include <utility>

#include "models/topologies/tree_shape.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

std::unique_ptr<Fabric> build_multi_plane(const SystemConfig& system, const RankLayout& layout,
                                          std::unique_ptr<Fabric> scale_up, Topology& topology) {
  if (!system.scale_out.rail_aware) {
    throw config::KeyError({"system.scale_out.rail_aware", "system.scale_out.kind"},
                           "planes meet only inside nodes: multi_plane needs rail_aware");
  }
  return build_tree(system, layout, {.planes = true}, std::move(scale_up), topology);
}

const ScaleOutRegistry::Register registered_multi_plane(
    "multi_plane", "NIC i of every node to plane i, each plane a fat tree of its own",
    build_multi_plane);

}  // namespace
}  // namespace orrery
