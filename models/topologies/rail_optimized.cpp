// SPDX-License-Identifier: Apache-2.0
// Rail-optimised scale-out (NVIDIA DGX SuperPOD reference architecture): NIC i of every node goes
// to leaf i of its group, and the leaves of all rails are joined by the same spines.
//
// A group is `nodes_per_leaf_group` copies of the system: 32 DGX, or 8 racks of NVL72 in which the
// trays are the nodes.
#include <utility>

#include "models/topologies/tree_shape.h"

namespace orrery {
namespace {

std::unique_ptr<Fabric> build_rail_optimized(const SystemConfig& system, const RankLayout& layout,
                                             std::unique_ptr<Fabric> scale_up, Topology& topology) {
  return build_tree(system, layout, {}, std::move(scale_up), topology);
}

const ScaleOutRegistry::Register registered_rail_optimized(
    "rail_optimized", "NIC i of every node to leaf i, spines and cores above (PXN between rails)",
    build_rail_optimized);

}  // namespace
}  // namespace orrery
