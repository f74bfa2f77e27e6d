// SPDX-License-Identifier: Apache-2.0
// Graphs of one system as `wires` give them.
#include <fmt/core.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/graph_fabric.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

/// Names of vertices as wires give them.
class VertexNames {
 public:
  VertexNames(const SystemConfig& system, const RankLayout& layout, SystemGraph& graph)
      : system_(system), graph_(graph) {
    for (int rank = 0; rank < layout.ranks_per_system; ++rank) {
      const int package = rank / layout.dies, die = rank % layout.dies;
      numbers_[layout.dies > 1 ? fmt::format("accelerator{}/die{}", package, die)
                               : fmt::format("accelerator{}", package)] = rank;
    }
  }

  /// @param path the key that gives the name
  /// @throws config::KeyError for an accelerator that does not exist, and a name that is nearly
  /// that of one.
  int number(const std::string& name, const std::string& path) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    const std::string meant = meant_accelerator(name);
    if (name.starts_with(kAccelerator) || name.empty() || !meant.empty()) {
      throw config::KeyError(path, fmt::format("there is no '{}'", name),
                             {meant,
                              {fmt::format("{} has {} accelerators, counted from 0", system_.name,
                                           system_.accelerators.value)}});
    }
    numbers_[name] = graph_.vertices();
    graph_.switches.push_back(name);
    first_path_[name] = path;
    return numbers_[name];
  }

  /// A switch that one wire alone reaches passes nothing on: where its name is nearly that of
  /// another, that one was meant.
  /// @throws config::KeyError
  void refuse_misspelt_switches() const {
    std::vector<int> scale_up_ends(static_cast<std::size_t>(graph_.vertices()));
    for (const SystemGraph::Wire& wire : graph_.wires) {
      // Wires are there in both directions. Hosts may well be dead ends.
      scale_up_ends[index(wire.from)] += wire.kind == LinkKind::kHost ? 2 : 1;
    }
    for (const std::string& name : graph_.switches) {
      if (scale_up_ends[index(numbers_.at(name))] != 1) continue;
      std::vector<std::string> others;
      for (const std::string& other : graph_.switches) {
        if (scale_up_ends[index(numbers_.at(other))] > 1) others.push_back(other);
      }
      const std::string meant = nearest_name(name, others);
      if (meant.empty()) continue;
      throw config::KeyError(first_path_.at(name),
                             fmt::format("only this wire ends at '{}', so nothing passes it", name),
                             {meant, {}});
    }
  }

 private:
  static constexpr const char* kAccelerator = "accelerator";

  /// The accelerator that a misspelt name is nearest to; empty where it is like none.
  std::string meant_accelerator(const std::string& name) const {
    std::vector<std::string> accelerators;
    for (const auto& [other, number] : numbers_) {
      if (number < graph_.ranks) accelerators.push_back(other);
    }
    return nearest_name(name, accelerators);
  }

  const SystemConfig& system_;
  SystemGraph& graph_;
  std::map<std::string, int> numbers_;
  std::map<std::string, std::string> first_path_;  // of switches: the key that named them first
};

}  // namespace

void SystemGraph::join(Wire wire) {
  wires.push_back(wire);
  std::swap(wire.from, wire.to);
  wires.push_back(wire);
}

const config::Schema<WireConfig>& WireConfig::schema() {
  using C = WireConfig;
  using config::between;
  static const auto schema =
      config::Schema<C>("wire", "parallel links between two vertices, the same both ways")
          .required("from", &C::from, "accelerator3 of the system, or any name of a switch")
          .required("to", &C::to, "accelerator3 of the system, or any name of a switch")
          .optional("kind", &C::kind, "messages take links to the host only where they must")
          .optional("links", &C::links, "parallel links", between(1, 1e6))
          .optional(
              "bandwidth", &C::bandwidth,
              "bandwidth of one link, one way; 0 takes that of the accelerator's ports [GB/s]",
              between(BytesPerSecond(0), BytesPerSecond(1e15)))
          .check(
              "a wire joins two different ends", [](const C& c) { return c.from != c.to; }, "to");
  return schema;
}

SystemGraph configured_graph(const std::vector<WireConfig>& wires, const SystemConfig& system,
                             const RankLayout& layout) {
  SystemGraph graph;
  graph.ranks = layout.ranks_per_system;
  graph.switches_reduce = system.scale_up.switch_reduction;
  VertexNames names(system, layout, graph);
  const PortConfig& port = system.accelerator.scale_up;
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const WireConfig& wire = wires[i];
    const std::string path = fmt::format("system.scale_up.wires.{}", i);
    BytesPerSecond link = wire.bandwidth;
    if (link.base() <= 0 && port.links.value > 0) link = port.bandwidth.value / port.links.value;
    if (link.base() <= 0) {
      throw config::KeyError(
          path, fmt::format("the link from {} to {} needs a bandwidth", wire.from, wire.to));
    }
    const int from = names.number(wire.from, path + ".from");
    graph.join({from, names.number(wire.to, path + ".to"), wire.links, link, wire.kind});
  }
  names.refuse_misspelt_switches();
  return graph;
}

}  // namespace orrery
