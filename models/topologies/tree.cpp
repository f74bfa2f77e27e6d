// SPDX-License-Identifier: Apache-2.0
// A fat tree between systems: NICs, leaves, spines and cores (see tree_shape.h for its sizes).
//
// A message for another rail first crosses the scale-up fabric to the accelerator of its own node
// that owns the destination's rail, and leaves through that one's NIC. NCCL does so by default
// (PXN, "PCIe x NVLink": NVIDIA developer blog, "Doubling all2all performance with NCCL 2.12"),
// because it keeps the traffic of a group off the spines, which are crossed only between groups.
//
// Under adaptive routing the spines of a pod are equally loaded, and so are its cores: the uplinks
// of a leaf are one bundle, and those of a pod. Otherwise every uplink is a bundle, and a message
// takes the one that the hash of (source, destination, flow) or the destination picks.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/path_hash.h"
#include "models/topologies/tree_exchange.h"
#include "models/topologies/tree_names.h"
#include "models/topologies/tree_shape.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

using VertexId = Topology::VertexId;

/// "from->to"
std::string way(std::string from, const std::string& to) {
  from.append("->").append(to);
  return from;
}

std::size_t index(int number) { return static_cast<std::size_t>(number); }

class TreeFabric final : public Fabric {
 public:
  TreeFabric(const SystemConfig& system, const RankLayout& layout, TreeKind kind,
             std::unique_ptr<Fabric> scale_up, Topology& topology)
      : layout_(layout),
        shape_(tree_shape(system, layout, kind)),
        names_(shape_),
        scale_up_(std::move(scale_up)),
        routing_(system.scale_out.routing),
        flows_(routing_ == Routing::kEcmp ? system.scale_out.flows : 1),
        relays_(kind.leaf_per_rail && system.scale_out.rail_aware),
        reduces_(system.scale_out.reduction != NetworkReduction::kNone),
        first_bundle_(static_cast<BundleId>(topology.bundles().size())) {
    if (shared_nics()) {
      add_shared_ports(system.accelerator, topology);
    } else {
      add_ports(topology);
    }
    add_switches(topology);
    for (int leaf = 0; leaf < shape_.leaves() && shape_.leaf_uplinks > 0; ++leaf) {
      for (int lane = 0; lane < lanes(shape_.leaf_uplinks); ++lane) {
        const std::string spine = adaptive()
                                      ? names_.pod(pod(leaf), plane(leaf)) + "spines"
                                      : names_.spine(pod(leaf), plane(leaf), spine_of_uplink(lane));
        add_pair(names_.leaf(leaf), spine, {shape_.leaf_up, shape_.leaf_uplinks}, leaf_up_,
                 leaf_down_, topology);
      }
    }
    for (int p = 0; p < shape_.pods * shape_.planes && shape_.pods > 1; ++p) {
      const int uplinks = shape_.spines * shape_.spine_uplinks;
      for (int lane = 0; lane < lanes(uplinks); ++lane) {
        const int pod = p / shape_.planes, plane = p % shape_.planes;
        const std::string spine = adaptive()
                                      ? names_.pod(pod, plane) + "spines"
                                      : names_.spine(pod, plane, lane / shape_.spine_uplinks);
        add_pair(spine, "cores", {shape_.pod_up, uplinks}, pod_up_, pod_down_, topology);
      }
    }
  }

  void append_route(int source, int destination, Route& route) const override {
    if (layout_.system(source) == layout_.system(destination)) {
      scale_up_->append_route(source, destination, route);
      return;
    }
    const int sender = relay(source, destination);
    if (sender != source) scale_up_->append_route(source, sender, route);
    if (shared_nics()) route.push_back({slot_up_[index(sender)]});
    route.push_back({port_up_[index(sender)]});
    const int from = leaf_of(sender), to = leaf_of(destination);
    for (int flow = 0; from != to && flow < flows_; ++flow) {
      append_climb(from, to, key(source, destination, flow), route);
    }
    route.push_back({port_down_[index(destination)]});
    if (shared_nics()) route.push_back({slot_down_[index(destination)]});
  }

  int hops(int source, int destination) const override {
    if (layout_.system(source) == layout_.system(destination)) {
      return scale_up_->hops(source, destination);
    }
    const int sender = relay(source, destination);
    const int inside =
        (sender == source ? 0 : scale_up_->hops(source, sender)) + (shared_nics() ? 2 : 0);
    const int from = leaf_of(sender), to = leaf_of(destination);
    if (from == to) return inside + 2;
    return inside + (pod(from) == pod(to) ? 4 : 6);
  }

  void add_exchange(std::span<const int> group, double bytes,
                    std::vector<double>& loads) const override {
    if (!adaptive()) {  // every pair has a path of its own
      Fabric::add_exchange(group, bytes, loads);
      return;
    }
    const TreeExchange exchange(layout_, shape_, relays_, group);
    exchange.add_inside(*scale_up_, bytes, loads);
    for (const int rank : group) {
      const double received = bytes * exchange.received_from_elsewhere(rank);
      loads[port_down_[index(rank)]] += received;
      if (shared_nics()) loads[slot_down_[index(rank)]] += received;
    }
    exchange.for_each_sender([&](int rank, double messages) {
      loads[port_up_[index(rank)]] += bytes * messages;
      if (shared_nics()) loads[slot_up_[index(rank)]] += bytes * messages;
    });
    for (std::size_t leaf = 0; leaf < leaf_up_.size(); ++leaf) {
      loads[leaf_up_[leaf]] += bytes * exchange.above_leaf(static_cast<int>(leaf)).up;
      loads[leaf_down_[leaf]] += bytes * exchange.above_leaf(static_cast<int>(leaf)).down;
    }
    for (std::size_t p = 0; p < pod_up_.size(); ++p) {
      loads[pod_up_[p]] += bytes * exchange.above_pod(static_cast<int>(p)).up;
      loads[pod_down_[p]] += bytes * exchange.above_pod(static_cast<int>(p)).down;
    }
  }

  // Trees of several planes share no switch, in which a group could be reduced.
  bool reduces(std::span<const int> group) const override {
    if (is_inside(group)) return scale_up_->reduces(group);
    return reduces_ && shape_.planes == 1;
  }
  std::vector<int> torus(std::span<const int> group) const override {
    return is_inside(group) ? scale_up_->torus(group) : std::vector<int>();
  }
  RingOrders rings(std::span<const int> group) const override { return scale_up_->rings(group); }
  void append_reduction(std::span<const int> group, Route& route) const override {
    if (is_inside(group)) {
      scale_up_->append_reduction(group, route);
    } else {
      append_reducing_tree(group, {slot_up_, port_up_, leaf_up_, pod_up_}, route);
    }
  }
  void append_multicast(std::span<const int> group, Route& route) const override {
    if (is_inside(group)) {
      scale_up_->append_multicast(group, route);
    } else {
      append_reducing_tree(group, {slot_down_, port_down_, leaf_down_, pod_down_}, route);
    }
  }

  void degrade(BundleId bundle, double share, Topology& topology) override {
    if (bundle >= first_bundle_) {
      Fabric::degrade(bundle, share, topology);
    } else {
      scale_up_->degrade(bundle, share, topology);
    }
  }

  void draw(Topology& topology) const override {
    scale_up_->draw(topology);
    const BytesPerSecond port = shape_.port / layout_.dies;
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const VertexId leaf = first_leaf_ + index(leaf_of(rank));
      const BundleId up = port_up_[index(rank)], down = port_down_[index(rank)];
      if (!shared_nics()) {
        draw_pair(topology.rank_vertex(rank), leaf, port, up, down, topology);
        continue;
      }
      const VertexId nic = first_nic_ + index(nic_of(rank));
      draw_pair(topology.rank_vertex(rank), nic, topology.bundles()[slot_up_[index(rank)]].capacity,
                slot_up_[index(rank)], slot_down_[index(rank)], topology);
      if (rank % ranks_per_nic() == 0) draw_pair(nic, leaf, shape_.port, up, down, topology);
    }
    for (int leaf = 0; leaf < shape_.leaves(); ++leaf) {
      for (int link = 0; link < shape_.leaf_uplinks; ++link) {
        const std::size_t lane = leaf_lane(leaf, link);
        const VertexId spine = spine_vertex(pod(leaf), plane(leaf), spine_of_uplink(link));
        draw_pair(first_leaf_ + index(leaf), spine, shape_.leaf_up / shape_.leaf_uplinks,
                  leaf_up_[lane], leaf_down_[lane], topology);
      }
    }
    for (int p = 0; p < shape_.pods * shape_.planes; ++p) draw_cores(p, topology);
  }

 private:
  bool shared_nics() const { return shape_.packages_per_nic > 1; }
  int ranks_per_nic() const { return shape_.packages_per_nic * layout_.dies; }
  int nic_of(int rank) const { return rank / ranks_per_nic(); }
  bool adaptive() const { return routing_ == Routing::kAdaptive; }
  // Bundles that `links` uplinks are: one, or all.
  int lanes(int links) const { return adaptive() ? 1 : links; }
  std::size_t leaf_lane(int leaf, int link) const {
    return index(leaf * lanes(shape_.leaf_uplinks) + (adaptive() ? 0 : link));
  }
  std::size_t pod_lane(int pod_plane, int spine, int link) const {
    const int number = adaptive() ? 0 : spine * shape_.spine_uplinks + link;
    return index(pod_plane * lanes(shape_.spines * shape_.spine_uplinks) + number);
  }

  /// The rank of the source's node that sends: the one in the destination's place, down to the die,
  /// so that a uniform exchange loads all ports alike.
  int relay(int source, int destination) const {
    if (!relays_) return source;
    return layout_.node(source) * layout_.ranks_per_node + destination % layout_.ranks_per_node;
  }

  bool is_inside(std::span<const int> group) const {
    return std::all_of(group.begin(), group.end(), [&](int rank) {
      return layout_.system(rank) == layout_.system(group.front());
    });
  }
  int leaf_of(int rank) const { return tree_leaf(layout_, shape_, rank); }
  int pod(int leaf) const { return leaf / shape_.rails / shape_.groups_per_pod; }
  int plane(int leaf) const { return leaf % shape_.rails % shape_.planes; }
  int pod_plane(int leaf) const { return pod(leaf) * shape_.planes + plane(leaf); }
  int spine_of_uplink(int link) const { return link / (shape_.leaf_uplinks / shape_.spines); }
  VertexId spine_vertex(int pod, int plane, int spine) const {
    return first_spine_ + index((pod * shape_.planes + plane) * shape_.spines + spine);
  }

  std::uint64_t key(int source, int destination, int flow) const {
    const auto word = [](int number) { return static_cast<std::uint64_t>(number); };
    if (routing_ == Routing::kDeterministic) return word(destination);
    return mix(mix(mix(word(source)) + word(destination)) + word(flow));
  }
  /// The next choice among `count` of the path with this key.
  static int choose(std::uint64_t& key, int count) {
    const auto choices = static_cast<std::uint64_t>(count);
    const auto choice = static_cast<int>(key % choices);
    key /= choices;
    return choice;
  }

  /// From leaf to leaf, on the path of that key.
  void append_climb(int from, int to, std::uint64_t key, Route& route) const {
    const double share = 1.0 / flows_;
    const int parallel = shape_.leaf_uplinks / shape_.spines;
    const int up = choose(key, shape_.leaf_uplinks);
    const int spine = spine_of_uplink(up);
    route.push_back({leaf_up_[leaf_lane(from, up)], share});
    if (pod(from) != pod(to)) {
      const int uplink = choose(key, shape_.spine_uplinks);
      const int core_links = shape_.spine_uplinks / shape_.cores_per_spine;
      const int down = uplink - uplink % core_links + choose(key, core_links);
      route.push_back({pod_up_[pod_lane(pod_plane(from), spine, uplink)], share});
      route.push_back({pod_down_[pod_lane(pod_plane(to), spine, down)], share});
    }
    route.push_back({leaf_down_[leaf_lane(to, spine * parallel + choose(key, parallel))], share});
  }

  /// The links of a tree one way: between packages and shared NICs, of NICs, leaves and pods.
  struct TreeLinks {
    const std::vector<BundleId>&slots, &ports, &leaves, &pods;
  };

  /// A tree over the switches between the ranks of a group, one uplink of each; which one is
  /// hashed from the first rank.
  void append_reducing_tree(std::span<const int> group, const TreeLinks& links,
                            Route& route) const {
    std::set<int> leaves, pods;
    for (const int rank : group) {
      if (shared_nics()) route.push_back({links.slots[index(rank)]});
      route.push_back({links.ports[index(rank)]});
      leaves.insert(leaf_of(rank));
    }
    if (leaves.size() == 1) return;
    std::uint64_t path = key(group.front(), group.front(), 0);
    const int uplink = choose(path, shape_.leaf_uplinks);
    for (const int leaf : leaves) {
      route.push_back({links.leaves[leaf_lane(leaf, uplink)]});
      pods.insert(pod(leaf));
    }
    if (pods.size() == 1) return;
    const int core = choose(path, shape_.spine_uplinks);
    for (const int p : pods)
      route.push_back({links.pods[pod_lane(p, spine_of_uplink(uplink), core)]});
  }

  void add_ports(Topology& topology) {
    const BytesPerSecond port = shape_.port / layout_.dies;
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const std::string& name = topology.rank_name(rank);
      const std::string leaf = names_.leaf(leaf_of(rank));
      port_up_.push_back(
          topology.add_bundle({way(name, leaf), LinkKind::kScaleOut, port, 1, rank}));
      port_down_.push_back(
          topology.add_bundle({way(leaf, name), LinkKind::kScaleOut, port, 1, -1}));
    }
  }

  /// NICs are behind the PCIe slots of the packages that share them.
  void add_shared_ports(const AcceleratorConfig& accelerator, Topology& topology) {
    const BytesPerSecond link = accelerator.host_link.bandwidth.value;
    const BytesPerSecond slot = (link > shape_.port ? link : shape_.port) / layout_.dies;
    first_nic_ = boost::num_vertices(topology.graph());
    for (int rank = 0; rank < layout_.ranks(); ++rank) {
      const int in_node = rank % layout_.ranks_per_node / ranks_per_nic();
      const std::string nic =
          node_name(layout_, layout_.node(rank)) + "/nic" + std::to_string(in_node);
      if (rank % ranks_per_nic() == 0) {
        topology.add_switch(nic);
        const std::string leaf = names_.leaf(leaf_of(rank));
        for (int i = 0; i < ranks_per_nic(); ++i) {
          port_up_.push_back(static_cast<BundleId>(topology.bundles().size()));
          port_down_.push_back(port_up_.back() + 1);
        }
        topology.add_bundle({way(nic, leaf), LinkKind::kScaleOut, shape_.port, 1, -1});
        topology.add_bundle({way(leaf, nic), LinkKind::kScaleOut, shape_.port, 1, -1});
      }
      const std::string& name = topology.rank_name(rank);
      slot_up_.push_back(topology.add_bundle({way(name, nic), LinkKind::kHost, slot, 1, rank}));
      slot_down_.push_back(topology.add_bundle({way(nic, name), LinkKind::kHost, slot, 1, -1}));
    }
  }

  void add_switches(Topology& topology) {
    first_leaf_ = boost::num_vertices(topology.graph());
    for (int leaf = 0; leaf < shape_.leaves(); ++leaf) topology.add_switch(names_.leaf(leaf));
    first_spine_ = boost::num_vertices(topology.graph());
    for (int p = 0; p < shape_.pods * shape_.planes; ++p) {
      for (int spine = 0; spine < shape_.spines; ++spine) {
        topology.add_switch(names_.spine(p / shape_.planes, p % shape_.planes, spine));
      }
    }
    first_core_ = boost::num_vertices(topology.graph());
    for (int plane = 0; plane < shape_.planes; ++plane) {
      for (int core = 0; core < shape_.cores(); ++core) {
        topology.add_switch(names_.plane(plane) + "core" + std::to_string(core));
      }
    }
  }

  struct Uplinks {  // of a switch, all lanes
    BytesPerSecond capacity;
    int links = 0;
  };

  /// One bundle each way, which is one lane.
  void add_pair(const std::string& below, const std::string& above, const Uplinks& all,
                std::vector<BundleId>& up, std::vector<BundleId>& down, Topology& topology) {
    const int count = lanes(all.links);
    const BytesPerSecond capacity = all.capacity / count;
    up.push_back(topology.add_bundle(
        {below + "->" + above, LinkKind::kScaleOut, capacity, all.links / count, -1}));
    down.push_back(topology.add_bundle(
        {above + "->" + below, LinkKind::kScaleOut, capacity, all.links / count, -1}));
  }

  static void draw_pair(VertexId below, VertexId above, BytesPerSecond capacity, BundleId up,
                        BundleId down, Topology& topology) {
    topology.add_link(below, above, capacity, up);
    topology.add_link(above, below, capacity, down);
  }

  void draw_cores(int pod_plane, Topology& topology) const {
    if (shape_.pods == 1) return;
    const int plane = pod_plane % shape_.planes;
    const int links = shape_.spines * shape_.spine_uplinks;
    const int per_core = shape_.spine_uplinks / shape_.cores_per_spine;
    for (int number = 0; number < links; ++number) {
      const int spine = number / shape_.spine_uplinks, link = number % shape_.spine_uplinks;
      const int core = plane * shape_.cores() + spine * shape_.cores_per_spine + link / per_core;
      const std::size_t lane = pod_lane(pod_plane, spine, link);
      draw_pair(spine_vertex(pod_plane / shape_.planes, plane, spine), first_core_ + index(core),
                shape_.pod_up / links, pod_up_[lane], pod_down_[lane], topology);
    }
  }

  RankLayout layout_;
  TreeShape shape_;
  TreeNames names_;
  std::unique_ptr<Fabric> scale_up_;
  Routing routing_;
  int flows_;
  bool relays_;   // through the owner of the destination's rail
  bool reduces_;  // switches do
  BundleId first_bundle_;
  VertexId first_nic_ = 0, first_leaf_ = 0, first_spine_ = 0, first_core_ = 0;
  std::vector<BundleId> slot_up_, slot_down_;  // by rank; empty where NICs are not shared
  std::vector<BundleId> port_up_, port_down_;  // by rank
  std::vector<BundleId> leaf_up_, leaf_down_;  // by leaf, then lane
  std::vector<BundleId> pod_up_, pod_down_;    // by pod, plane, lane
};

}  // namespace

std::unique_ptr<Fabric> build_tree(const SystemConfig& system, const RankLayout& layout,
                                   TreeKind kind, std::unique_ptr<Fabric> scale_up,
                                   Topology& topology) {
  return std::make_unique<TreeFabric>(system, layout, kind, std::move(scale_up), topology);
}

}  // namespace orrery
