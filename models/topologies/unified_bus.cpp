// SPDX-License-Identifier: Apache-2.0
// The unified bus (UB) of Huawei CloudMatrix384 (Zuo et al., arXiv 2506.12708, section 3):
// independent sub-planes, each with one L1 switch chip on every node board and a tier of L2 chips
// that all its L1 chips connect to.
//
//   die(node, package, d) <-> L1(node, plane)   one link per plane
//   L1(node, plane)       <-> L2(plane, j)      one link per L2 chip
//
// All links have the same rate. With 7 planes, 16 dies and 16 L2 chips an L1 chip has 16 links down
// and 16 up: full bisection. Dies of one package are also joined directly, which is the shorter
// route between them. Ideal spraying: within a node over the planes, between nodes over all planes
// and L2 chips (7 x 16 paths).
#include <fmt/core.h>

#include <string>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

struct UnifiedBusTopology final : ScaleUpTopology {
  int planes = 0;
  int l2_switches = 0;  // of a plane

  static const config::Schema<UnifiedBusTopology>& schema() {
    using C = UnifiedBusTopology;
    static const auto schema =
        config::Schema<C>("unified_bus", "planes of L1 and L2 chips")
            .required("planes", &C::planes, "independent sub-planes", config::between(1, 1e6))
            .required("l2_switches", &C::l2_switches, "second-level chips of a plane",
                      config::between(1, 1e6));
    return schema;
  }

  config::Fault fault(const SystemConfig& system) const override {
    const PortConfig& port = system.accelerator.scale_up;
    if (!port.present() || planes * system.accelerator.dies == port.links.value) return {};
    return {"planes times dies must be scale_up.links of the accelerator",
            {"scale_up.planes", "accelerator.dies", "accelerator.scale_up.links", "scale_up.kind"}};
  }

  std::unique_ptr<Fabric> build(const SystemConfig& system, const RankLayout& layout,
                                Topology& topology) const override;
};

class UnifiedBusFabric final : public Fabric {
 public:
  UnifiedBusFabric(const UnifiedBusTopology& keys, const SystemConfig& system,
                   const RankLayout& layout, Topology& topology)
      : layout_(layout), planes_(keys.planes), l2_switches_(keys.l2_switches) {
    const PortConfig& port = system.accelerator.scale_up;
    link_ = port.bandwidth.value / port.links.value;
    add_packages(system.accelerator.die_to_die.value, topology);
    add_bundles(topology);
    add_switches(topology);
  }

  void append_route(int source, int destination, Route& route) const override {
    if (layout_.package(source) == layout_.package(destination)) {
      route.push_back({package_links_[package_link(source, destination)]});
      return;
    }
    route.push_back({rank_up_[index(source)]});
    if (layout_.node(source) != layout_.node(destination)) {
      route.push_back({node_up_[index(layout_.node(source))]});
      route.push_back({node_down_[index(layout_.node(destination))]});
    }
    route.push_back({rank_down_[index(destination)]});
  }

  void add_exchange(std::span<const int> group, double bytes,
                    std::vector<double>& loads) const override {
    const auto n = static_cast<double>(group.size());
    const int first = group.empty() ? 0 : layout_.system(group.front()) * layout_.ranks_per_system;
    std::vector<std::vector<int>> packages(index(layout_.ranks_per_system / layout_.dies));
    std::vector<double> nodes(index(layout_.ranks_per_system / layout_.ranks_per_node));
    for (const int rank : group) {
      packages[index((rank - first) / layout_.dies)].push_back(rank);
      nodes[index((rank - first) / layout_.ranks_per_node)] += 1;
    }
    for (const std::vector<int>& package : packages) {
      const double crossing = bytes * (n - static_cast<double>(package.size()));
      for (const int rank : package) {
        loads[rank_up_[index(rank)]] += crossing;
        loads[rank_down_[index(rank)]] += crossing;
        for (const int other : package) {
          if (other != rank) loads[package_links_[package_link(rank, other)]] += bytes;
        }
      }
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const std::size_t number = index(first / layout_.ranks_per_node) + node;
      loads[node_up_[number]] += bytes * nodes[node] * (n - nodes[node]);
      loads[node_down_[number]] += bytes * nodes[node] * (n - nodes[node]);
    }
  }

  int hops(int source, int destination) const override {
    if (layout_.package(source) == layout_.package(destination)) return 0;
    return layout_.node(source) == layout_.node(destination) ? 2 : 4;
  }

  void draw(Topology& topology) const override {
    draw_packages(topology);
    const int nodes = layout_.ranks_per_system / layout_.ranks_per_node;
    for (int s = 0; s < layout_.systems; ++s) {
      auto vertex = first_switch_ + index(s * planes_ * (l2_switches_ + nodes));
      for (int plane = 0; plane < planes_; ++plane) {
        const auto first_l2 = vertex;
        vertex += index(l2_switches_);
        for (int node = s * nodes; node < (s + 1) * nodes; ++node) {
          draw_node(node, vertex++, first_l2, topology);
        }
      }
    }
  }

 private:
  // Links from each die to the others of its package, by rank, then by the other's number in the
  // package.
  std::size_t package_link(int source, int destination) const {
    return index(source * layout_.dies + destination % layout_.dies);
  }

  void add_packages(BytesPerSecond capacity, Topology& topology) {
    package_links_.resize(index(layout_.ranks() * layout_.dies));
    each_way_between_dies([&](int source, int other) {
      package_links_[package_link(source, other)] = topology.add_bundle(
          topology.rank_name(source), fmt::format("die{}", other % layout_.dies),
          {LinkKind::kOnPackage, capacity, 1, source});
    });
  }

  template <class Visit>
  void each_way_between_dies(Visit visit) const {
    for (int source = 0; source < layout_.ranks(); ++source) {
      const int first = layout_.package(source) * layout_.dies;
      for (int other = first; other < first + layout_.dies; ++other)
        if (other != source) visit(source, other);
    }
  }

  void add_bundles(Topology& topology) {
    const auto add = [&](const std::string& from, const std::string& to, int links, int source,
                         int half_routes) {
      const BytesPerSecond capacity = link_ * static_cast<double>(links);
      return topology.add_bundle(from, to,
                                 {LinkKind::kScaleUp, capacity, links, source, half_routes});
    };
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      rank_up_.push_back(add(topology.rank_name(rank), "l1_switches", planes_, rank, 1));
      rank_down_.push_back(add("l1_switches", topology.rank_name(rank), planes_, -1, 1));
    }
    const int links = planes_ * l2_switches_;
    for (int node = 0; node < layout_.nodes(); ++node) {
      const std::string l1 = node_name(layout_, node) + "/l1_switches";
      node_up_.push_back(add(l1, "l2_switches", links, -1, 0));
      node_down_.push_back(add("l2_switches", l1, links, -1, 0));
    }
  }

  // By system and plane: the L2 chips, then the L1 chips of the nodes.
  void add_switches(Topology& topology) {
    first_switch_ = topology.vertices();
    const int nodes = layout_.ranks_per_system / layout_.ranks_per_node;
    for (int s = 0; s < layout_.systems; ++s) {
      for (int p = 0; p < planes_; ++p) {
        for (int j = 0; j < l2_switches_; ++j)
          topology.add_switch(fmt::format("system{}/plane{}/l2_switch{}", s, p, j));
        for (int node = s * nodes; node < (s + 1) * nodes; ++node)
          topology.add_switch(fmt::format("{}/plane{}/l1_switch", node_name(layout_, node), p));
      }
    }
  }

  void draw_packages(Topology& topology) const {
    each_way_between_dies([&](int source, int other) {
      const BundleId bundle = package_links_[package_link(source, other)];
      topology.add_link(topology.rank_vertex(source), topology.rank_vertex(other),
                        topology.bundles()[bundle].capacity, bundle);
    });
  }

  void draw_node(int node, Topology::VertexId l1, Topology::VertexId first_l2,
                 Topology& topology) const {
    for (int local = 0; local < layout_.ranks_per_node; ++local) {
      const int rank = node * layout_.ranks_per_node + local;
      const auto die = topology.rank_vertex(rank);
      topology.add_link(die, l1, link_, rank_up_[index(rank)]);
      topology.add_link(l1, die, link_, rank_down_[index(rank)]);
    }
    for (auto chip = first_l2; chip < first_l2 + index(l2_switches_); ++chip) {
      topology.add_link(l1, chip, link_, node_up_[index(node)]);
      topology.add_link(chip, l1, link_, node_down_[index(node)]);
    }
  }

  RankLayout layout_;
  int planes_;
  int l2_switches_;
  BytesPerSecond link_;
  Topology::VertexId first_switch_ = 0;
  std::vector<BundleId> package_links_;
  std::vector<BundleId> rank_up_, rank_down_;
  std::vector<BundleId> node_up_, node_down_;
};

std::unique_ptr<Fabric> UnifiedBusTopology::build(const SystemConfig& system,
                                                  const RankLayout& layout,
                                                  Topology& topology) const {
  require_die_links(system);
  return std::make_unique<UnifiedBusFabric>(*this, system, layout, topology);
}

const RegisterScaleUp<UnifiedBusTopology> registered_unified_bus(
    "unified_bus", "planes of L1 chips on every node and L2 chips above them (CloudMatrix384)");

}  // namespace
}  // namespace orrery
