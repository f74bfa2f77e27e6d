// SPDX-License-Identifier: Apache-2.0
// The routes of the fabrics against a naive search: on the graph of physical links, follow all
// shortest paths and split the bytes equally over the links of every hop.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/topologies/pcie_config.h"
#include "sim/graph/topology_boost.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::spraying_test {
namespace {

using namespace orrery::fixtures;
using VertexId = Topology::VertexId;
using LinkBytes = std::map<const void*, double>;  // by the address of the link's properties

/// Links to a vertex on all shortest paths, by Bellman-Ford: the graphs of these tests are small.
std::vector<int> hops_to(const Topology& topology, VertexId destination) {
  const auto& graph = topology.graph();
  constexpr int kFar = 1000;
  std::vector<int> hops(boost::num_vertices(graph), kFar);
  hops[destination] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [link, end] = boost::edges(graph); link != end; ++link) {
      const int through = hops[boost::target(*link, graph)] + 1;
      int& mine = hops[boost::source(*link, graph)];
      if (through >= mine) continue;
      mine = through;
      changed = true;
    }
  }
  return hops;
}

void spray(const Topology& topology, const std::vector<int>& hops, VertexId at, double bytes,
           LinkBytes& loads) {
  if (hops[at] == 0) return;
  const auto& graph = topology.graph();
  std::vector<LinkId> next;
  for (auto [link, end] = boost::out_edges(at, graph); link != end; ++link) {
    if (hops[boost::target(*link, graph)] == hops[at] - 1) next.push_back(*link);
  }
  const double share = bytes / static_cast<double>(next.size());
  for (const LinkId& link : next) {
    loads[&graph[link]] += share;
    spray(topology, hops, boost::target(link, graph), share, loads);
  }
}

/// Every physical link must carry its share of the bundle that the route names, and no other link
/// anything.
void expect_sprayed_evenly(const FlowModel& network, const Topology& topology, int source,
                           int destination) {
  LinkBytes naive;
  const auto hops = hops_to(topology, topology.rank_vertex(destination));
  spray(topology, hops, topology.rank_vertex(source), 1.0, naive);
  std::vector<double> bundle_bytes(topology.bundles().size());
  for (const Hop& hop : network.route(source, destination)) bundle_bytes[hop.bundle] += hop.share;
  for (auto [link, end] = boost::edges(topology.graph()); link != end; ++link) {
    const Topology::Link& properties = topology.graph()[*link];
    const double share = properties.capacity / topology.bundles()[properties.bundle].capacity;
    const auto found = naive.find(&properties);
    EXPECT_NEAR(found == naive.end() ? 0 : found->second, bundle_bytes[properties.bundle] * share,
                1e-12)
        << link_name(topology, *link) << " from " << source << " to " << destination;
  }
}

void expect_sprayed_evenly(const FlowModel& network, int source, int destination) {
  expect_sprayed_evenly(network, network.drawn(), source, destination);
}

void expect_all_pairs_sprayed_evenly(const FlowModel& network) {
  const Topology drawn = network.drawn();
  for (int source = 0; source < network.topology().ranks(); ++source) {
    for (int destination = 0; destination < network.topology().ranks(); ++destination) {
      if (source != destination) expect_sprayed_evenly(network, drawn, source, destination);
    }
  }
}

TEST(Spraying, DgxH100RoutesEqualTheNaiveEnumeration) {
  expect_all_pairs_sprayed_evenly(FlowModel(dgx_h100(), 1));
}

TEST(Spraying, UnifiedBusRoutesEqualTheNaiveEnumeration) {
  expect_all_pairs_sprayed_evenly(FlowModel(unified_bus(3, 2, 3, 4), 1));
}

TEST(Spraying, CloudMatrixRoutesEqualTheNaiveEnumeration) {
  const FlowModel network(cm384(), 1);
  expect_sprayed_evenly(network, 0, 1);     // within a package
  expect_sprayed_evenly(network, 0, 15);    // within a node
  expect_sprayed_evenly(network, 17, 767);  // between nodes
}

// Where peers write to each other at all distances; memory and bridges are choices of the library.
TEST(Spraying, PcieRoutesEqualTheNaiveEnumeration) {
  SystemConfig system = ideal_system(8, 8, 26_GBps, 1, 100_Gbitps);
  system.scale_up.set_kind("pcie");
  PcieConfig& pcie = fabric_keys<PcieTopology>(system).pcie;
  pcie.sockets = 2;
  pcie.socket_link.value = 20_GBps;
  pcie.peers = PcieLevel::kSys;
  expect_all_pairs_sprayed_evenly(FlowModel(system, 1));
  pcie.packages_per_switch = 2;
  expect_all_pairs_sprayed_evenly(FlowModel(system, 1));
  pcie.switch_lanes = 16;
  expect_all_pairs_sprayed_evenly(FlowModel(system, 1));
}

TEST(Spraying, SameRailRoutesEqualTheNaiveEnumeration) {
  SystemConfig system = dgx_h100();
  system.scale_out.nodes_per_leaf_group = 2;
  const FlowModel network(system, 4);
  expect_sprayed_evenly(network, 3, 8 + 3);   // one leaf
  expect_sprayed_evenly(network, 3, 24 + 3);  // over the spine
}

TEST(Spraying, BoardsAndTrunksEqualTheNaiveEnumeration) {
  expect_all_pairs_sprayed_evenly(FlowModel(dgx_2(), 1));
}

TEST(Spraying, DiesThatSharePackageLinksEqualTheNaiveEnumeration) {
  SystemConfig system = nvl72();
  system.accelerators.value = 4;
  system.accelerator.dies = 3;
  system.accelerator.die_to_die.value = 5_TBps;
  expect_all_pairs_sprayed_evenly(FlowModel(system, 1));
}

// The one way that NCCL finds, of two links where there are (src/graph/paths.cc): 0 and 7 have two
// such routes, and 0 and 5 two of one link, of which that over 1 ends on two.
TEST(Spraying, ACubeMeshRelaysByOnePeer) {
  const FlowModel network(dgx_1(), 1);
  const auto route = [&](int source, int destination) {
    std::vector<std::string> links;
    for (const Hop& hop : network.route(source, destination)) {
      EXPECT_EQ(hop.share, 1);
      const std::string name = network.topology().bundle_name(hop.bundle);
      links.push_back({name[std::string("system0/node0/accelerator").size()], name.back()});
    }
    return links;
  };
  using Links = std::vector<std::string>;
  EXPECT_EQ(route(0, 1), Links{"01"});
  EXPECT_EQ(route(0, 5), (Links{"01", "15"}));
  EXPECT_EQ(route(4, 1), (Links{"45", "51"}));
  EXPECT_EQ(route(0, 7), (Links{"03", "37"}));
}

TEST(Spraying, AGraphOfSwitchesEqualsTheNaiveEnumeration) {
  SystemConfig system = dgx_h100();
  system.accelerators.value = system.accelerators_per_node = 4;
  std::vector<WireConfig> wires;
  const auto join = [&wires](const char* from, const char* to, int links) {
    wires.push_back({from, to, LinkKind::kScaleUp, links, 25_GBps});
  };
  join("accelerator0", "a", 2);
  join("accelerator1", "a", 1);
  join("accelerator2", "b", 1);
  join("accelerator3", "b", 3);
  join("a", "left", 1);
  join("a", "right", 2);
  join("b", "left", 2);
  join("b", "right", 1);
  set_wires(system, "graph", wires);
  expect_all_pairs_sprayed_evenly(FlowModel(system, 1));
}

/// Systems of 2 NICs in groups of 2, on switches of 8 ports.
SystemConfig small_tree(const char* kind) {
  SystemConfig system = dgx_h100();
  system.accelerators.value = system.accelerators_per_node = 2;
  system.scale_out.kind = kind;
  system.scale_out.nodes_per_leaf_group = 2;
  system.scale_out.switch_ports = {8};
  return system;
}

TEST(Spraying, TreesOfThreeTiersEqualTheNaiveEnumeration) {
  for (const char* kind : {"rail_optimized", "clos", "multi_plane"}) {
    const FlowModel network(small_tree(kind), 32);
    const Topology drawn = network.drawn();
    const bool climbs =
        std::string(kind) == "clos";  // other rails too: the naive search has no PXN
    for (int destination = 2; destination < 64; destination += climbs ? 1 : 2) {
      expect_sprayed_evenly(network, drawn, 0, destination);
    }
  }
}

TEST(Spraying, WithoutRailsInsideTheNodeAMessageClimbsToTheSpines) {
  SystemConfig system = small_tree("rail_optimized");
  system.scale_out.rail_aware = false;
  const FlowModel network(system, 8);
  // Within the group the route over another GPU of the node would be as short.
  for (int destination = 4; destination < 16; ++destination) {
    expect_sprayed_evenly(network, 0, destination);
  }
}

}  // namespace
}  // namespace orrery::spraying_test
