// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/graph_fabric.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

constexpr int kMostVertices = 2048;
constexpr int kFar = -1;

std::size_t index(int number) { return static_cast<std::size_t>(number); }

class GraphFabric final : public Fabric {
 public:
  GraphFabric(const std::string& system, const RankLayout& layout, SystemGraph graph,
              Topology& topology)
      : layout_(layout), graph_(std::move(graph)), out_(index(graph_.vertices())) {
    for (std::size_t wire = 0; wire < graph_.wires.size(); ++wire) {
      out_[index(graph_.wires[wire].from)].push_back(wire);
    }
    for (int rank = 0; rank < graph_.ranks; ++rank) distances_.push_back(distances_to(rank));
    check_connected(system, topology);
    first_switch_ = boost::num_vertices(topology.graph());
    for (int s = 0; s < layout.systems; ++s) {
      for (const std::string& name : graph_.switches) {
        topology.add_switch("system" + std::to_string(s) + "/" + name);
      }
    }
    first_bundle_ = static_cast<BundleId>(topology.bundles().size());
    for (int s = 0; s < layout.systems; ++s) add_bundles(s, topology);
  }

  void append_route(int source, int destination, Route& route) const override {
    const int system = layout_.system(source);
    const std::vector<int>& distance = distances_[index(destination % layout_.ranks_per_system)];
    // Bytes still to go by vertex, farthest first: all that reaches a vertex has arrived before it
    // is passed on.
    std::map<std::pair<int, int>, double> pending;
    const auto add = [&](int vertex, double share) {
      pending[{-distance[index(vertex)], vertex}] += share;
    };
    add(source % layout_.ranks_per_system, 1);
    while (pending.begin()->first.first < 0) {
      const auto [place, share] = *pending.begin();
      pending.erase(pending.begin());
      const int at = place.second;
      double all = 0;
      for (const std::size_t wire : out_[index(at)]) {
        if (shortens(wire, distance)) all += capacity(wire);
      }
      for (const std::size_t wire : out_[index(at)]) {
        if (!shortens(wire, distance)) continue;
        const double part = share * capacity(wire) / all;
        route.push_back({bundle(system, wire), part});
        add(graph_.wires[wire].to, part);
      }
    }
  }

  int hops(int source, int destination) const override {
    return distances_[index(destination % layout_.ranks_per_system)]
                     [index(source % layout_.ranks_per_system)];
  }

  void draw(Topology& topology) const override {
    for (int s = 0; s < layout_.systems; ++s) {
      for (std::size_t wire = 0; wire < graph_.wires.size(); ++wire) {
        const SystemGraph::Wire& drawn = graph_.wires[wire];
        for (int link = 0; link < drawn.links; ++link) {
          topology.add_link(vertex(topology, s, drawn.from), vertex(topology, s, drawn.to),
                            drawn.link, bundle(s, wire));
        }
      }
    }
  }

 private:
  double capacity(std::size_t wire) const {
    return graph_.wires[wire].link.base() * graph_.wires[wire].links;
  }
  bool shortens(std::size_t wire, const std::vector<int>& distance) const {
    const SystemGraph::Wire& taken = graph_.wires[wire];
    return distance[index(taken.to)] != kFar &&
           distance[index(taken.to)] + 1 == distance[index(taken.from)];
  }
  BundleId bundle(int system, std::size_t wire) const {
    return first_bundle_ + static_cast<BundleId>(index(system) * graph_.wires.size() + wire);
  }
  Topology::VertexId vertex(const Topology& topology, int system, int number) const {
    if (number < graph_.ranks) {
      return topology.rank_vertex(system * layout_.ranks_per_system + number);
    }
    return first_switch_ + index(system) * graph_.switches.size() + index(number - graph_.ranks);
  }

  /// Links on the shortest way from every vertex, by a search from the destination backwards. Links
  /// come in pairs, so out_ serves as the way in.
  std::vector<int> distances_to(int destination) const {
    std::vector<int> distance(out_.size(), kFar);
    distance[index(destination)] = 0;
    std::vector<int> queue = {destination};
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const int at = queue[next];
      for (const std::size_t wire : out_[index(at)]) {
        const int neighbour = graph_.wires[wire].to;
        if (distance[index(neighbour)] != kFar) continue;
        distance[index(neighbour)] = distance[index(at)] + 1;
        queue.push_back(neighbour);
      }
    }
    return distance;
  }

  void check_connected(const std::string& system, const Topology& topology) const {
    for (int rank = 0; rank < graph_.ranks; ++rank) {
      if (distances_[0][index(rank)] != kFar) continue;
      throw config::ConfigError(system + ": no way from " + topology.rank_name(0) + " to " +
                                topology.rank_name(rank));
    }
  }

  void add_bundles(int system, Topology& topology) const {
    const auto& graph = topology.graph();
    for (const SystemGraph::Wire& wire : graph_.wires) {
      const auto from = vertex(topology, system, wire.from);
      const int source = graph[from].rank;
      topology.add_bundle({graph[from].name + "->" + graph[vertex(topology, system, wire.to)].name,
                           wire.kind, wire.link * static_cast<double>(wire.links), wire.links,
                           source});
    }
  }

  RankLayout layout_;
  SystemGraph graph_;
  std::vector<std::vector<std::size_t>> out_;  // wires by the vertex they start at
  std::vector<std::vector<int>> distances_;    // by destination rank, then vertex
  Topology::VertexId first_switch_ = 0;
  BundleId first_bundle_ = 0;
};

/// Names of vertices as wires give them.
class VertexNames {
 public:
  VertexNames(const SystemConfig& system, const RankLayout& layout, SystemGraph& graph)
      : system_(system), graph_(graph) {
    for (int rank = 0; rank < layout.ranks_per_system; ++rank) {
      std::string name = "accelerator" + std::to_string(rank / layout.dies);
      if (layout.dies > 1) name += "/die" + std::to_string(rank % layout.dies);
      numbers_[name] = rank;
    }
  }

  /// @throws config::ConfigError for an accelerator that does not exist.
  int number(const std::string& name) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    if (name.rfind("accelerator", 0) == 0 || name.empty()) {
      throw config::ConfigError(system_.name + ": scale_up.wires: there is no '" + name +
                                "'; the system has " + std::to_string(system_.accelerators.value) +
                                " accelerators, counted from 0");
    }
    numbers_[name] = graph_.vertices();
    graph_.switches.push_back(name);
    return numbers_[name];
  }

 private:
  const SystemConfig& system_;
  SystemGraph& graph_;
  std::map<std::string, int> numbers_;
};

}  // namespace

void SystemGraph::join(Wire wire) {
  wires.push_back(wire);
  std::swap(wire.from, wire.to);
  wires.push_back(wire);
}

std::unique_ptr<Fabric> build_graph(const std::string& system, const RankLayout& layout,
                                    SystemGraph graph, Topology& topology) {
  if (graph.vertices() > kMostVertices) {
    throw config::ConfigError(system + ": a graph may have " + std::to_string(kMostVertices) +
                              " vertices, not " + std::to_string(graph.vertices()));
  }
  return std::make_unique<GraphFabric>(system, layout, std::move(graph), topology);
}

SystemGraph configured_graph(const SystemConfig& system, const RankLayout& layout) {
  SystemGraph graph;
  graph.ranks = layout.ranks_per_system;
  VertexNames names(system, layout, graph);
  const PortConfig& port = system.accelerator.scale_up;
  for (const WireConfig& wire : system.scale_up.wires) {
    BytesPerSecond link = wire.bandwidth;
    if (link.base() <= 0 && port.links.value > 0) link = port.bandwidth.value / port.links.value;
    if (link.base() <= 0) {
      throw config::ConfigError(system.name + ": scale_up.wires: the link from " + wire.from +
                                " to " + wire.to + " needs a bandwidth");
    }
    const int from = names.number(wire.from);
    graph.join({from, names.number(wire.to), wire.links, link, LinkKind::kScaleUp});
  }
  return graph;
}

}  // namespace orrery
