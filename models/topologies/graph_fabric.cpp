// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/graph_fabric.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "models/topologies/fabric.h"
#include "sim/config/diagnostics.h"
#include "sim/graph/topology_boost.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

constexpr int kMostVertices = 2048;
constexpr int kFar = std::numeric_limits<int>::max();
constexpr int kHostDetour = 1000;  // a link to the host counts as that many others

constexpr double kMostLinks = 64;  // between two ranks, that rings tell apart
constexpr double kRounding = 1e-9;

/// The graph of one system with its faults, and how far everything is.
struct SystemRoutes {
  std::vector<double> capacities;           // by wire; 0: down
  std::vector<std::vector<int>> distances;  // by destination rank, then vertex
  std::vector<std::vector<double>> widths;  // likewise: what the widest shortest route carries
};

class GraphFabric final : public Fabric {
 public:
  GraphFabric(std::string system, const RankLayout& layout, SystemGraph graph, Topology& topology)
      : name_(std::move(system)),
        layout_(layout),
        graph_(std::move(graph)),
        out_(index(graph_.vertices())),
        in_(index(graph_.vertices())),
        routes_of_(index(layout.systems)) {
    SystemRoutes healthy;
    for (std::size_t wire = 0; wire < graph_.wires.size(); ++wire) {
      const SystemGraph::Wire& added = graph_.wires[wire];
      out_[index(added.from)].push_back(wire);
      in_[index(added.to)].push_back(wire);
      healthy.capacities.push_back(added.link.base() * added.links);
    }
    routes_.push_back(std::move(healthy));
    find_routes(routes_.back());
    require_connected(topology);
    first_switch_ = topology.vertices();
    for (int s = 0; s < layout.systems; ++s) {
      for (const std::string& switch_name : graph_.switches) {
        topology.add_switch(fmt::format("system{}/{}", s, switch_name));
      }
    }
    first_bundle_ = static_cast<BundleId>(topology.bundles().size());
    for (int s = 0; s < layout.systems; ++s) add_bundles(s, topology);
  }

  void append_route(int source, int destination, Route& route) const override {
    const int system = layout_.system(source);
    const SystemRoutes& routes = routes_[routes_of_[index(system)]];
    const std::vector<int>& distance = routes.distances[index(destination % graph_.ranks)];
    // Shares still to go by vertex, farthest first: all that reaches a vertex has arrived before it
    // is passed on.
    std::map<std::pair<int, int>, double> pending;
    const auto add = [&](int vertex, double share) {
      pending[{-distance[index(vertex)], vertex}] += share;
    };
    add(source % graph_.ranks, 1);
    while (pending.begin()->first.first < 0) {
      const auto [place, share] = *pending.begin();
      pending.erase(pending.begin());
      const std::vector<std::size_t> wires =
          wires_on(place.second, destination % graph_.ranks, routes);
      double all = 0;
      for (const std::size_t wire : wires) all += routes.capacities[wire];
      for (const std::size_t wire : wires) {
        const double part = share * routes.capacities[wire] / all;
        route.push_back({bundle(system, wire), part});
        add(graph_.wires[wire].to, part);
      }
    }
  }

  void degrade(BundleId bundle, double share, Topology& topology) override {
    const std::size_t number = bundle - first_bundle_;
    const std::size_t system = number / graph_.wires.size(), wire = number % graph_.wires.size();
    if (routes_of_[system] == 0) {  // still the healthy one
      routes_.push_back(routes_.front());
      routes_of_[system] = routes_.size() - 1;
    }
    topology.scale(bundle, share);
    SystemRoutes without = routes_[routes_of_[system]];
    without.capacities[wire] *= share;
    find_routes(without);
    found_rings_.clear();
    // What has no other way stays on the one that it had.
    if (!cut_off(without)) routes_[routes_of_[system]] = std::move(without);
  }

  RingOrders rings(std::span<const int> group) const override {
    if (group.size() > static_cast<std::size_t>(kMostRingMembers)) return {};
    const std::size_t routes = routes_of_[index(layout_.system(group.front()))];
    std::vector<int> members;
    members.reserve(group.size());
    for (const int rank : group) members.push_back(rank % graph_.ranks);
    const std::lock_guard lock(found_rings_guard_);
    const auto [found, added] = found_rings_.try_emplace({routes, members});
    if (added) found->second = disjoint_rings(direct_links(members, routes_[routes]));
    return found->second;
  }

  bool reduces(std::span<const int> group) const override {
    if (!graph_.switches_reduce || group.empty()) return false;
    const std::vector<int> first = switches_of(group.front());
    return !first.empty() && std::all_of(group.begin(), group.end(),
                                         [&](int rank) { return switches_of(rank) == first; });
  }
  // One tier: each switch reduces the share of the bytes that its links carry.
  void append_reduction(std::span<const int> group, Route& route) const override {
    for (const int rank : group) append_shares(rank, out_[index(rank % graph_.ranks)], route);
  }
  void append_multicast(std::span<const int> group, Route& route) const override {
    for (const int rank : group) append_shares(rank, in_[index(rank % graph_.ranks)], route);
  }

  void draw(Topology& topology) const override {
    for (int s = 0; s < layout_.systems; ++s) {
      for (std::size_t wire = 0; wire < graph_.wires.size(); ++wire) {
        const SystemGraph::Wire& drawn = graph_.wires[wire];
        const BytesPerSecond link(routes_[routes_of_[index(s)]].capacities[wire] / drawn.links);
        for (int i = 0; i < drawn.links && link.base() > 0; ++i) {
          topology.add_link(vertex(topology, s, drawn.from), vertex(topology, s, drawn.to), link,
                            bundle(s, wire));
        }
      }
    }
  }

 private:
  int length(std::size_t wire) const {
    return graph_.wires[wire].kind == LinkKind::kHost ? kHostDetour : 1;
  }
  bool shortens(std::size_t wire, const SystemRoutes& routes,
                const std::vector<int>& distance) const {
    const SystemGraph::Wire& taken = graph_.wires[wire];
    return routes.capacities[wire] > 0 && distance[index(taken.to)] != kFar &&
           distance[index(taken.to)] + length(wire) == distance[index(taken.from)];
  }
  /// The wires that a message takes from a vertex: all to the destination and to switches, which
  /// spray. Where only ranks relay, those to one of them: libraries know one way through a peer
  /// (NCCL src/graph/paths.cc, ncclTopoSetPaths), the widest one, on ties that with the widest end,
  /// and networks on chips' own links correct one dimension after the other, which the nearest
  /// number stands for.
  std::vector<std::size_t> wires_on(int at, int destination, const SystemRoutes& routes) const {
    const std::vector<int>& distance = routes.distances[index(destination)];
    const std::vector<double>& widths = routes.widths[index(destination)];
    std::vector<std::size_t> direct, relayed;
    for (const std::size_t wire : out_[index(at)]) {
      if (!shortens(wire, routes, distance)) continue;
      const int to = graph_.wires[wire].to;
      (to == destination || to >= graph_.ranks ? direct : relayed).push_back(wire);
    }
    if (!direct.empty() || relayed.empty()) return direct;
    const auto key = [&](std::size_t wire) {
      const int to = graph_.wires[wire].to;
      return std::tuple(-std::min(routes.capacities[wire], widths[index(to)]), -widths[index(to)],
                        std::abs(to - at), to);
    };
    const int relay =
        graph_
            .wires[*std::min_element(relayed.begin(), relayed.end(),
                                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); })]
            .to;
    std::erase_if(relayed, [&](std::size_t wire) { return graph_.wires[wire].to != relay; });
    return relayed;
  }
  BundleId bundle(int system, std::size_t wire) const {
    return first_bundle_ + static_cast<BundleId>(index(system) * graph_.wires.size() + wire);
  }
  Topology::VertexId vertex(const Topology& topology, int system, int number) const {
    if (number < graph_.ranks) return topology.rank_vertex(system * graph_.ranks + number);
    return first_switch_ + index(system) * graph_.switches.size() + index(number - graph_.ranks);
  }

  void find_routes(SystemRoutes& routes) const {
    routes.distances.clear();
    routes.widths.clear();
    for (int to = 0; to < graph_.ranks; ++to) {
      routes.distances.push_back(distances_to(to, routes));
      routes.widths.push_back(widths_to(to, routes));
    }
  }

  /// Capacities of the widest of the shortest routes to the destination, by vertex.
  std::vector<double> widths_to(int destination, const SystemRoutes& routes) const {
    const std::vector<int>& distance = routes.distances[index(destination)];
    std::vector<int> near(distance.size());
    std::iota(near.begin(), near.end(), 0);
    std::stable_sort(near.begin(), near.end(),
                     [&](int a, int b) { return distance[index(a)] < distance[index(b)]; });
    std::vector<double> widths(distance.size());
    widths[index(destination)] = std::numeric_limits<double>::infinity();
    for (const int at : near) {
      for (const std::size_t wire : out_[index(at)]) {
        if (!shortens(wire, routes, distance)) continue;
        const double width =
            std::min(routes.capacities[wire], widths[index(graph_.wires[wire].to)]);
        widths[index(at)] = std::max(widths[index(at)], width);
      }
    }
    return widths;
  }

  /// Two ranks, the first of which has no route to the second.
  std::optional<std::pair<int, int>> cut_off(const SystemRoutes& routes) const {
    for (int to = 0; to < graph_.ranks; ++to) {
      for (int from = 0; from < graph_.ranks; ++from) {
        if (routes.distances[index(to)][index(from)] == kFar) return std::pair(from, to);
      }
    }
    return {};
  }
  void require_connected(const Topology& topology) const {
    if (const auto ranks = cut_off(routes_.front())) {
      throw config::KeyError(
          {"system.scale_up.wires", "system.scale_up.kind"},
          fmt::format("{}: no route from {} to {}", name_, topology.rank_name(ranks->first),
                      topology.rank_name(ranks->second)));
    }
  }

  /// Whether a wire is up and for collectives.
  bool serves_collectives(std::size_t wire, const SystemRoutes& routes) const {
    return routes.capacities[wire] > 0 && graph_.wires[wire].kind != LinkKind::kHost;
  }

  /// The switches that a rank has links to, in order; none where it also has links to ranks.
  std::vector<int> switches_of(int rank) const {
    const SystemRoutes& routes = routes_[routes_of_[index(layout_.system(rank))]];
    std::set<int> switches;
    for (const std::size_t wire : out_[index(rank % graph_.ranks)]) {
      if (!serves_collectives(wire, routes)) continue;
      if (graph_.wires[wire].to < graph_.ranks) return {};
      switches.insert(graph_.wires[wire].to);
    }
    return {switches.begin(), switches.end()};
  }

  /// Appends the links of a rank to its switches, each with its share of the bytes.
  void append_shares(int rank, const std::vector<std::size_t>& wires, Route& route) const {
    const int system = layout_.system(rank);
    const SystemRoutes& routes = routes_[routes_of_[index(system)]];
    double all = 0;
    for (const std::size_t wire : wires)
      all += serves_collectives(wire, routes) ? routes.capacities[wire] : 0;
    for (const std::size_t wire : wires) {
      if (!serves_collectives(wire, routes)) continue;
      route.push_back({bundle(system, wire), routes.capacities[wire] / all});
    }
  }

  /// Direct links between ranks, in units of the narrowest one; none where a rank has a switch.
  LinkTable direct_links(const std::vector<int>& members, const SystemRoutes& routes) const {
    std::map<int, int> place;
    for (std::size_t i = 0; i < members.size(); ++i) place[members[i]] = static_cast<int>(i);
    double unit = std::numeric_limits<double>::infinity();
    std::map<std::pair<int, int>, double> capacities;
    for (std::size_t wire = 0; wire < graph_.wires.size(); ++wire) {
      const SystemGraph::Wire& taken = graph_.wires[wire];
      if (!serves_collectives(wire, routes) || place.count(taken.from) == 0) continue;
      if (taken.to >= graph_.ranks) return LinkTable(0);
      if (place.count(taken.to) == 0) continue;
      unit = std::min(unit, routes.capacities[wire] / taken.links);
      capacities[{place[taken.from], place[taken.to]}] += routes.capacities[wire];
    }
    LinkTable links(static_cast<int>(members.size()));
    for (const auto& [ends, capacity] : capacities) {
      const auto back = capacities.find({ends.second, ends.first});
      if (back == capacities.end()) continue;  // down
      const double both = std::min(capacity, back->second) / unit;
      links.set(ends.first, ends.second, static_cast<int>(std::min(both + kRounding, kMostLinks)));
    }
    return links;
  }

  /// Length of the shortest route from every vertex (Dijkstra's algorithm, from the destination
  /// backwards).
  std::vector<int> distances_to(int destination, const SystemRoutes& routes) const {
    std::vector<int> distance(out_.size(), kFar);
    distance[index(destination)] = 0;
    std::set<std::pair<int, int>> queue = {{0, destination}};
    while (!queue.empty()) {
      const auto [so_far, at] = *queue.begin();
      queue.erase(queue.begin());
      for (const std::size_t wire : in_[index(at)]) {
        const int before = graph_.wires[wire].from;
        if (routes.capacities[wire] <= 0 || distance[index(before)] <= so_far + length(wire))
          continue;
        queue.erase({distance[index(before)], before});
        distance[index(before)] = so_far + length(wire);
        queue.insert({distance[index(before)], before});
      }
    }
    return distance;
  }

  void add_bundles(int system, Topology& topology) const {
    const auto& graph = topology.graph();
    for (const SystemGraph::Wire& wire : graph_.wires) {
      const auto from = vertex(topology, system, wire.from);
      const int source = graph[from].rank;
      const auto to = vertex(topology, system, wire.to);
      const int half_routes = source >= 0 && graph[to].rank >= 0 ? 2 : 1;
      topology.add_bundle(topology.vertex_name(from), topology.vertex_name(to),
                          {wire.kind, wire.link * static_cast<double>(wire.links), wire.links,
                           source, half_routes});
    }
  }

  std::string name_;
  RankLayout layout_;
  SystemGraph graph_;
  std::vector<std::vector<std::size_t>> out_, in_;  // wires by the vertex they leave or reach
  std::vector<SystemRoutes> routes_;                // the healthy system first
  std::vector<std::size_t> routes_of_;              // by system
  Topology::VertexId first_switch_ = 0;
  BundleId first_bundle_ = 0;
  mutable std::mutex found_rings_guard_;
  mutable std::map<std::pair<std::size_t, std::vector<int>>, RingOrders>
      found_rings_;  // by routes and members
};

}  // namespace

std::unique_ptr<Fabric> build_graph(const std::string& system, const RankLayout& layout,
                                    SystemGraph graph, Topology& topology) {
  if (graph.vertices() > kMostVertices) {
    throw config::KeyError({"system.scale_up.wires", "system.accelerators"},
                           fmt::format("{}: a graph may have {} vertices, not {}", system,
                                       kMostVertices, graph.vertices()));
  }
  return std::make_unique<GraphFabric>(system, layout, std::move(graph), topology);
}

}  // namespace orrery
