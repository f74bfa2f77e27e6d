// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/config/declared.h"

namespace orrery {

/// Parallel links between two vertices of a `mesh` or `graph`, the same both ways.
struct WireConfig {
  std::string from, to;  ///< "accelerator3" (of the system), with "/die1" where a package has
                         ///< several; any other name is a switch
  LinkKind kind = LinkKind::kScaleUp;  ///< messages take links to the host only where they must
  int links = 1;
  BytesPerSecond
      bandwidth;  ///< bandwidth of one link, one way; 0 takes that of the accelerator's ports
  static const config::Schema<WireConfig>& schema();
};

/// A topology that has, or may have, its links as a table.
struct WiredTopology : ScaleUpTopology {
  std::vector<WireConfig> wires;
};

/// The links inside one system as a graph: vertices 0..ranks-1 are the ranks, then the switches.
struct SystemGraph {
  /// Parallel links, one way.
  struct Wire {
    int from = 0, to = 0;
    int links = 1;
    BytesPerSecond link;  ///< capacity of one
    LinkKind kind = LinkKind::kScaleUp;
  };
  int ranks = 0;
  std::vector<std::string> switches;
  std::vector<Wire> wires;
  bool switches_reduce = false;  ///< and multicast, where each has links to all ranks of a group

  int vertices() const { return ranks + static_cast<int>(switches.size()); }
  /// Adds the same links both ways.
  void join(Wire wire);
};

/// Fabric of any graph. A message splits over all shortest paths through switches: at every vertex
/// over the links that lie on one, in proportion to their bandwidth. Where ranks alone relay, one
/// of them does.
/// @throws config::ConfigError where two ranks are not connected, or the graph has more than 2,048
///         vertices.
std::unique_ptr<Fabric> build_graph(const std::string& system, const RankLayout& layout,
                                    SystemGraph graph, Topology& topology);

/// Vertices and wires as configured.
/// @throws config::ConfigError for an accelerator that does not exist, or a link without bandwidth.
SystemGraph configured_graph(const std::vector<WireConfig>& wires, const SystemConfig& system,
                             const RankLayout& layout);

namespace config {

template <>
struct EnumNames<LinkKind> {
  using enum LinkKind;
  static constexpr std::pair<LinkKind, const char*> values[] = {{kOnPackage, "on_package"},
                                                                {kScaleUp, "scale_up"},
                                                                {kScaleOut, "scale_out"},
                                                                {kHost, "host"}};
};

}  // namespace config

}  // namespace orrery
