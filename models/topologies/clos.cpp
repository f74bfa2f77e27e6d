// SPDX-License-Identifier: Apache-2.0
// A Clos network of racks: all NICs of `nodes_per_leaf_group` systems go to the switch on top of
// their rack, spines join the racks of a pod, cores the pods. Llama 3's RoCE cluster has 2 servers
// a rack, 192 racks a pod with full bisection, and 1:7 above the pods (Llama Team, arXiv
// 2407.21783, section 3.3.1).
#include <utility>

#include "models/topologies/tree_shape.h"

namespace orrery {
namespace {

std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                              std::unique_ptr<Fabric> scale_up, Topology& topology) {
  return build_tree(system, layout, {.leaf_per_rail = false}, std::move(scale_up), topology);
}

const ScaleOutRegistry::Register registered_clos(
    "clos", "all NICs of a rack to one leaf, spines and cores above, oversubscribed or not", build);

}  // namespace
}  // namespace orrery
