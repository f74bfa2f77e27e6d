// SPDX-License-Identifier: Apache-2.0
// Rail-optimised scale-out (NVIDIA DGX SuperPOD reference architecture): NIC i of every node goes
// to leaf i of its group, and the leaves are joined by spines in a non-blocking fat tree.
//
// A message for another rail first crosses the scale-up fabric to the accelerator of its own node
// that owns the destination's rail, and leaves through that one's NIC. NCCL does so by default
// (PXN, "PCIe x NVLink": NVIDIA developer blog, "Doubling all2all performance with NCCL 2.12"),
// because it keeps the traffic of a group off the spines, which are crossed only between groups.
//
// A group is `nodes_per_leaf_group` copies of the system: 32 DGX, or 8 racks of NVL72 in which the
// trays are the nodes.
//
// The spines of a non-blocking tree under ideal spraying are never the bottleneck and all equally
// loaded, so they stand as one switch: a leaf has one link to it, with the capacity of all its
// ports to nodes.
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

class RailOptimizedFabric final : public Fabric {
 public:
  RailOptimizedFabric(const SystemConfig& system, const RankLayout& layout,
                      std::unique_ptr<Fabric> scale_up, Topology& topology)
      : layout_(layout),
        scale_up_(std::move(scale_up)),
        systems_per_group_(system.scale_out.nodes_per_leaf_group),
        rails_(layout.ranks_per_node / layout.dies),
        port_(system.accelerator.scale_out.bandwidth.value / layout.dies) {
    const std::vector<Topology::VertexId> leaves = add_leaves(topology);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const std::size_t leaf = leaf_of(rank);
      const auto vertex = topology.rank_vertex(rank);
      const std::string& name = topology.rank_name(rank);
      port_up_.push_back(topology.add_bundle(name + "->" + leaf_name(leaf), LinkKind::kScaleOut));
      topology.add_link(vertex, leaves[leaf], port_, port_up_.back());
      port_down_.push_back(topology.add_bundle(leaf_name(leaf) + "->" + name, LinkKind::kScaleOut));
      topology.add_link(leaves[leaf], vertex, port_, port_down_.back());
    }
  }

  void append_route(int source, int destination, Route& route) const override {
    if (layout_.system(source) == layout_.system(destination)) {
      scale_up_->append_route(source, destination, route);
      return;
    }
    const int sender = rail_owner(source, destination);
    if (sender != source) scale_up_->append_route(source, sender, route);
    route.push_back({port_up_[static_cast<std::size_t>(sender)]});
    const std::size_t from = leaf_of(sender), to = leaf_of(destination);
    if (from != to) {
      route.push_back({leaf_up_[from]});
      route.push_back({leaf_down_[to]});
    }
    route.push_back({port_down_[static_cast<std::size_t>(destination)]});
  }

 private:
  /// The rank of the source's node that sends: the one in the destination's place, down to the die,
  /// so that a uniform exchange loads all ports alike.
  int rail_owner(int source, int destination) const {
    return layout_.node(source) * layout_.ranks_per_node + destination % layout_.ranks_per_node;
  }

  std::size_t leaf_of(int rank) const {
    const int leaf = layout_.system(rank) / systems_per_group_ * rails_ + layout_.rail(rank);
    return static_cast<std::size_t>(leaf);
  }

  std::string leaf_name(std::size_t leaf) const {
    const auto rails = static_cast<std::size_t>(rails_);
    return "group" + std::to_string(leaf / rails) + "/leaf" + std::to_string(leaf % rails);
  }

  std::vector<Topology::VertexId> add_leaves(Topology& topology) {
    const int groups = (layout_.systems + systems_per_group_ - 1) / systems_per_group_;
    const int count = groups * rails_;
    std::vector<Topology::VertexId> leaves(static_cast<std::size_t>(count));
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      leaves[leaf] = topology.add_switch(leaf_name(leaf));
    }
    if (groups == 1) return leaves;
    const auto spine = topology.add_switch("spine");
    const int ports = systems_per_group_ * layout_.ranks_per_system / rails_;
    const BytesPerSecond capacity = port_ * static_cast<double>(ports);
    for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      leaf_up_.push_back(topology.add_bundle(leaf_name(leaf) + "->spine", LinkKind::kScaleOut));
      topology.add_link(leaves[leaf], spine, capacity, leaf_up_.back());
      leaf_down_.push_back(topology.add_bundle("spine->" + leaf_name(leaf), LinkKind::kScaleOut));
      topology.add_link(spine, leaves[leaf], capacity, leaf_down_.back());
    }
    return leaves;
  }

  RankLayout layout_;
  std::unique_ptr<Fabric> scale_up_;
  int systems_per_group_;
  int rails_;
  BytesPerSecond port_;                        // of one rank
  std::vector<BundleId> port_up_, port_down_;  // by rank
  std::vector<BundleId> leaf_up_, leaf_down_;  // by leaf; empty with a single group
};

std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                              std::unique_ptr<Fabric> scale_up, Topology& topology) {
  if (system.accelerator.scale_out.bandwidth.value.base() <= 0) {
    throw config::ConfigError(system.name + ": several systems need a scale_out bandwidth");
  }
  if (system.scale_out.nodes_per_leaf_group < 1) {
    throw config::ConfigError(system.name + ": nodes_per_leaf_group must be positive");
  }
  return std::make_unique<RailOptimizedFabric>(system, layout, std::move(scale_up), topology);
}

const ScaleOutRegistry::Register registered(
    "rail_optimized",
    "NIC i of every node to leaf i, non-blocking spines above (PXN between rails)", build);

}  // namespace
}  // namespace orrery
