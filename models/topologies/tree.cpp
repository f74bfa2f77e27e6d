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
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/fabric.h"
#include "models/topologies/tree_exchange.h"
#include "models/topologies/tree_nics.h"
#include "models/topologies/tree_shape.h"
#include "sim/machine/system_config.h"
#include "sim/units/hash.h"

namespace orrery {
namespace {

using VertexId = Topology::VertexId;

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
        first_bundle_(static_cast<BundleId>(topology.bundles().size())),
        nics_(system, layout, shape_, names_, topology),
        leaves_(index(layout.ranks())) {
    for (int rank = 0; rank < layout.ranks(); ++rank)
      leaves_[index(rank)] = tree_leaf(layout_, shape_, rank);
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
    const auto [sender, receiver] = ports(source, destination);
    if (sender != source) scale_up_->append_route(source, sender, route);
    nics_.append_up(sender, route);
    const int from = leaf_of(sender), to = leaf_of(receiver);
    for (int flow = 0; from != to && flow < flows_; ++flow) {
      append_climb(from, to, key(source, destination, flow), route);
    }
    nics_.append_down(receiver, route);
    if (receiver != destination) scale_up_->append_route(receiver, destination, route);
  }

  int hops(int source, int destination) const override {
    const RouteLinks links = route(source, destination);
    return links.inside + links.between;
  }
  RouteLinks route(int source, int destination) const override {
    if (layout_.system(source) == layout_.system(destination))
      return {scale_up_->hops(source, destination), 0};
    const auto [sender, receiver] = ports(source, destination);
    int inside = nics_.slot_hops();
    if (sender != source) inside += scale_up_->hops(source, sender);
    if (receiver != destination) inside += scale_up_->hops(receiver, destination);
    const int from = leaf_of(sender), to = leaf_of(receiver);
    if (from == to) return {inside, 2};
    return {inside, pod(from) == pod(to) ? 4 : 6};
  }

  void add_exchange(std::span<const int> group, double bytes,
                    std::vector<double>& loads) const override {
    if (!adaptive() || !down_.empty()) {  // every pair has a path of its own
      Fabric::add_exchange(group, bytes, loads);
      return;
    }
    if (is_inside(group)) {
      scale_up_->add_exchange(group, bytes, loads);
      return;
    }
    const TreeExchange exchange(layout_, shape_, relays_, group);
    exchange.add_inside(*scale_up_, bytes, loads);
    for (const int rank : group) {
      const double received = bytes * exchange.received_from_elsewhere(rank);
      nics_.add_down(rank, received, loads);
    }
    exchange.for_each_sender(
        [&](int rank, double messages) { nics_.add_up(rank, bytes * messages, loads); });
    const auto [first_leaf, end_leaf] = exchange.leaves();
    for (int leaf = first_leaf; leaf < end_leaf && !leaf_up_.empty(); ++leaf) {
      loads[leaf_up_[index(leaf)]] += bytes * exchange.above_leaf(leaf).up;
      loads[leaf_down_[index(leaf)]] += bytes * exchange.above_leaf(leaf).down;
    }
    const auto [first_pod, end_pod] = exchange.pods();
    for (int p = first_pod; p < end_pod && !pod_up_.empty(); ++p) {
      loads[pod_up_[index(p)]] += bytes * exchange.above_pod(p).up;
      loads[pod_down_[index(p)]] += bytes * exchange.above_pod(p).down;
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
  const DimensionGrid* dimensions() const override { return scale_up_->dimensions(); }
  RingOrders rings(std::span<const int> group) const override { return scale_up_->rings(group); }
  void append_reduction(std::span<const int> group, Route& route) const override {
    if (is_inside(group)) {
      scale_up_->append_reduction(group, route);
    } else {
      append_reducing_tree(group, {nics_.up(), leaf_up_, pod_up_}, route);
    }
  }
  void append_multicast(std::span<const int> group, Route& route) const override {
    if (is_inside(group)) {
      scale_up_->append_multicast(group, route);
    } else {
      append_reducing_tree(group, {nics_.down(), leaf_down_, pod_down_}, route);
    }
  }

  // Around a NIC over another rail, around an uplink by another hash.
  void degrade(BundleId bundle, double share, Topology& topology) override {
    if (bundle >= first_bundle_) {
      Fabric::degrade(bundle, share, topology);
      if (share <= 0) down_.insert(bundle);
    } else {
      scale_up_->degrade(bundle, share, topology);
    }
  }

  void draw(Topology& topology) const override {
    scale_up_->draw(topology);
    nics_.draw(first_leaf_, topology);
    for (int leaf = 0; leaf < shape_.leaves(); ++leaf) {
      for (int link = 0; link < shape_.leaf_uplinks; ++link) {
        const std::size_t lane = leaf_lane(leaf, link);
        const VertexId spine = spine_vertex(pod(leaf), plane(leaf), spine_of_uplink(link));
        draw_pair(first_leaf_ + index(leaf), spine, shape_.leaf_up / shape_.leaf_uplinks,
                  {leaf_up_[lane], leaf_down_[lane]}, topology);
      }
    }
    for (int p = 0; p < shape_.pods * shape_.planes; ++p) draw_cores(p, topology);
  }

 private:
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

  struct Ports {
    int sender = 0, receiver = 0;
  };
  /// The ranks whose NICs a message goes through. Where one of them is down, both are those of the
  /// next rail on which neither is.
  Ports ports(int source, int destination) const {
    const Ports usual = {relay(source, destination), destination};
    if (works(usual)) return usual;
    const int node = layout_.ranks_per_node;
    for (int i = 1; i < node; ++i) {
      const int rail = (destination + i) % node;
      const Ports other = {source - source % node + rail, destination - destination % node + rail};
      if (works(other)) return other;
    }
    return usual;
  }
  bool works(Ports ports) const {
    return down_.empty() || (down_.count(nics_.up().ports[index(ports.sender)]) == 0 &&
                             down_.count(nics_.down().ports[index(ports.receiver)]) == 0);
  }

  bool is_inside(std::span<const int> group) const {
    return std::all_of(group.begin(), group.end(), [&](int rank) {
      return layout_.system(rank) == layout_.system(group.front());
    });
  }
  int leaf_of(int rank) const { return leaves_[index(rank)]; }
  int pod(int leaf) const { return leaf / shape_.rails / shape_.groups_per_pod; }
  int plane(int leaf) const { return leaf % shape_.rails % shape_.planes; }
  int pod_plane(int leaf) const { return pod(leaf) * shape_.planes + plane(leaf); }
  int spine_of_uplink(int link) const { return link / (shape_.leaf_uplinks / shape_.spines); }
  VertexId spine_vertex(int pod, int plane, int spine) const {
    return first_spine_ + index((pod * shape_.planes + plane) * shape_.spines + spine);
  }

  /// Spreads neighbouring keys.
  static std::uint64_t mix(std::uint64_t key) { return next_random(key); }
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

  /// From leaf to leaf, on the path of that key, or of its hash where that one is broken.
  void append_climb(int from, int to, std::uint64_t key, Route& route) const {
    constexpr int kMostHashes = 1000;
    const std::size_t begin = route.size();
    append_path(from, to, key, route);
    for (int i = 1; i < kMostHashes && is_broken(route, begin); ++i) {
      route.resize(begin);
      key = mix(key);
      append_path(from, to, key, route);
    }
  }
  bool is_broken(const Route& route, std::size_t begin) const {
    return !down_.empty() &&
           std::any_of(route.begin() + static_cast<std::ptrdiff_t>(begin), route.end(),
                       [&](const Hop& hop) { return down_.count(hop.bundle) > 0; });
  }
  void append_path(int from, int to, std::uint64_t key, Route& route) const {
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

  /// The links of a tree one way: of NICs, leaves and pods.
  struct TreeLinks {
    const PortLinks& own;
    const std::vector<BundleId>&leaves, &pods;
  };

  /// A tree over the switches between the ranks of a group, one uplink of each; which one is
  /// hashed from the first rank.
  void append_reducing_tree(std::span<const int> group, const TreeLinks& links,
                            Route& route) const {
    std::set<int> leaves, pods;
    for (const int rank : group) {
      if (!links.own.slots.empty()) route.push_back({links.own.slots[index(rank)]});
      route.push_back({links.own.ports[index(rank)]});
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

  void add_switches(Topology& topology) {
    first_leaf_ = topology.vertices();
    for (int leaf = 0; leaf < shape_.leaves(); ++leaf) topology.add_switch(names_.leaf(leaf));
    first_spine_ = topology.vertices();
    for (int p = 0; p < shape_.pods * shape_.planes; ++p) {
      for (int spine = 0; spine < shape_.spines; ++spine) {
        topology.add_switch(names_.spine(p / shape_.planes, p % shape_.planes, spine));
      }
    }
    first_core_ = topology.vertices();
    for (int plane = 0; plane < shape_.planes; ++plane) {
      for (int core = 0; core < shape_.cores(); ++core) {
        topology.add_switch(fmt::format("{}core{}", names_.plane(plane), core));
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
    const Bundle bundle{LinkKind::kScaleOut, capacity, all.links / count, -1};
    up.push_back(topology.add_bundle(below, above, bundle));
    down.push_back(topology.add_bundle(above, below, bundle));
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
                shape_.pod_up / links, {pod_up_[lane], pod_down_[lane]}, topology);
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
  TreeNics nics_;
  std::vector<int> leaves_;  ///< leaf switch by rank: every message asks for two of them
  VertexId first_leaf_ = 0, first_spine_ = 0, first_core_ = 0;
  std::vector<BundleId> leaf_up_, leaf_down_;  // by leaf, then lane
  std::vector<BundleId> pod_up_, pod_down_;    // by pod, plane, lane
  std::set<BundleId> down_;
};

}  // namespace

std::unique_ptr<Fabric> build_tree(const SystemConfig& system, const RankLayout& layout,
                                   TreeKind kind, std::unique_ptr<Fabric> scale_up,
                                   Topology& topology) {
  return std::make_unique<TreeFabric>(system, layout, kind, std::move(scale_up), topology);
}

}  // namespace orrery
