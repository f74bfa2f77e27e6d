// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

using VertexId = Topology::VertexId;

class HostedFabric final : public Fabric {
 public:
  HostedFabric(const SystemConfig& system, const RankLayout& layout, std::unique_ptr<Fabric> fabric,
               Topology& topology)
      : layout_(layout),
        fabric_(std::move(fabric)),
        per_switch_(system.host.packages_per_switch),
        link_(system.accelerator.host_link.bandwidth.value),
        network_(system.host.network),
        memory_(system.host.memory_bandwidth.value) {
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const std::string end = per_switch_ > 0 ? switch_name(switch_of(rank)) : "host";
      add(topology.rank_name(rank), end, link_ / layout.dies, rank, ranks_, topology);
    }
    first_switch_ = topology.vertices();
    for (int s = 0; per_switch_ > 0 && s < layout.nodes() * switches_per_node(); ++s) {
      topology.add_switch(switch_name(s));
      add(switch_name(s), "host", link_, -1, switches_, topology);
    }
    first_host_ = topology.vertices();
    for (int node = 0; node < layout.nodes(); ++node) {
      topology.add_switch(node_name(layout, node) + "/host");
      if (network_.base() <= 0) continue;
      add(node_name(layout, node) + "/host", "storage", network_, -1, nodes_, topology);
    }
    if (network_.base() > 0) storage_ = topology.add_switch("storage");
    for (int node = 0; memory_.base() > 0 && node < layout.nodes(); ++node) {
      const std::string host = node_name(layout, node) + "/host";
      memories_.push_back(
          topology.add_bundle(host, host + "/memory", {LinkKind::kHost, memory_, 1, -1}));
    }
  }

  void append_host_route(int rank, HostEnd end, bool outward, Route& route) const override {
    if (end == HostEnd::kStorage && nodes_.empty()) {
      throw config::KeyError("system.host.network", "the host boards have no network to storage");
    }
    if (end == HostEnd::kMemory) {
      if (memories_.empty())
        throw config::KeyError("system.host.memory_bandwidth",
                               "hosts that update weights need the bandwidth of their memory");
      route.push_back({memories_[index(layout_.node(rank))]});
      return;
    }
    std::vector<Pair> pairs = {ranks_[index(rank)]};
    if (per_switch_ > 0) pairs.push_back(switches_[index(switch_of(rank))]);
    if (end == HostEnd::kStorage) pairs.push_back(nodes_[index(layout_.node(rank))]);
    if (!outward) std::reverse(pairs.begin(), pairs.end());
    for (const Pair& pair : pairs) route.push_back({outward ? pair.out : pair.in});
  }

  void draw(Topology& topology) const override {
    fabric_->draw(topology);
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const VertexId end = per_switch_ > 0 ? first_switch_ + index(switch_of(rank))
                                           : first_host_ + index(layout_.node(rank));
      draw_pair(topology.rank_vertex(rank), end, ranks_[index(rank)], topology);
    }
    for (std::size_t s = 0; s < switches_.size(); ++s) {
      draw_pair(first_switch_ + s, first_host_ + s / index(switches_per_node()), switches_[s],
                topology);
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      draw_pair(first_host_ + node, storage_, nodes_[node], topology);
    }
  }

  void degrade(BundleId bundle, double share, Topology& topology) override {
    if (bundle >= ranks_.front().out) {
      Fabric::degrade(bundle, share, topology);
    } else {
      fabric_->degrade(bundle, share, topology);
    }
  }

  // Between accelerators.
  void append_route(int source, int destination, Route& route) const override {
    fabric_->append_route(source, destination, route);
  }
  int hops(int source, int destination) const override {
    return fabric_->hops(source, destination);
  }
  RouteLinks route(int source, int destination) const override {
    return fabric_->route(source, destination);
  }
  void add_exchange(std::span<const int> group, double bytes,
                    std::vector<double>& loads) const override {
    fabric_->add_exchange(group, bytes, loads);
  }
  bool reduces(std::span<const int> group) const override { return fabric_->reduces(group); }
  void append_reduction(std::span<const int> group, Route& route) const override {
    fabric_->append_reduction(group, route);
  }
  void append_multicast(std::span<const int> group, Route& route) const override {
    fabric_->append_multicast(group, route);
  }
  std::vector<int> torus(std::span<const int> group) const override {
    return fabric_->torus(group);
  }
  const DimensionGrid* dimensions() const override { return fabric_->dimensions(); }
  RingOrders rings(std::span<const int> group) const override { return fabric_->rings(group); }

 private:
  struct Pair {
    BundleId out = 0, in = 0;  // away from the accelerator, and to it
  };

  int switches_per_node() const {
    return layout_.ranks_per_node / layout_.dies / (per_switch_ > 0 ? per_switch_ : 1);
  }
  int switch_of(int rank) const { return rank / layout_.dies / per_switch_; }
  std::string switch_name(int number) const {
    return fmt::format("{}/pcie{}", node_name(layout_, number / switches_per_node()),
                       number % switches_per_node());
  }

  static void add(const std::string& below, const std::string& above, BytesPerSecond capacity,
                  int source, std::vector<Pair>& pairs, Topology& topology) {
    Pair pair;
    pair.out = topology.add_bundle(below, above, {LinkKind::kHost, capacity, 1, source});
    pair.in = topology.add_bundle(above, below, {LinkKind::kHost, capacity, 1, -1});
    pairs.push_back(pair);
  }
  static void draw_pair(VertexId below, VertexId above, const Pair& pair, Topology& topology) {
    const BytesPerSecond capacity = topology.bundles()[pair.out].capacity;
    topology.add_link(below, above, capacity, pair.out);
    topology.add_link(above, below, topology.bundles()[pair.in].capacity, pair.in);
  }

  RankLayout layout_;
  std::unique_ptr<Fabric> fabric_;
  int per_switch_;  // packages behind a PCIe switch; 0: there are none
  BytesPerSecond link_, network_, memory_;
  VertexId first_switch_ = 0, first_host_ = 0, storage_ = 0;
  std::vector<Pair> ranks_, switches_, nodes_;
  std::vector<BundleId> memories_;  // memories of host boards
};

}  // namespace

std::unique_ptr<Fabric> add_host_links(const SystemConfig& system, const RankLayout& layout,
                                       std::unique_ptr<Fabric> fabric, Topology& topology) {
  if (!system.accelerator.host_link.present()) {
    throw config::KeyError(
        "system.host.links",
        fmt::format("needs a host_link, which {} does not have", system.accelerator.name));
  }
  const int per_switch = system.host.packages_per_switch;
  if (per_switch > 0 && system.packages_per_node() % per_switch != 0) {
    throw config::KeyError({"system.host.packages_per_switch", "system.accelerators_per_node"},
                           fmt::format("{} does not divide accelerators_per_node ({})", per_switch,
                                       system.packages_per_node()));
  }
  return std::make_unique<HostedFabric>(system, layout, std::move(fabric), topology);
}

}  // namespace orrery
