// SPDX-License-Identifier: Apache-2.0
// Any graph of packages and switches, as configured: for machines that no other kind describes, and
// for those read from a file of NCCL.
#include <utility>

#include "models/topologies/graph_fabric.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                              Topology& topology) {
  return build_graph(system.name, layout, configured_graph(system, layout), topology);
}

const ScaleUpRegistry::Register registered_graph(
    "graph", "any graph of accelerators and switches, sprayed over all shortest paths", build);

}  // namespace
}  // namespace orrery
