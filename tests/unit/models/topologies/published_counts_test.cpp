// SPDX-License-Identifier: Apache-2.0
// Chips, ports and links of the machines against what is published of them.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/topologies/torus.h"
#include "models/topologies/tree_shape.h"
#include "sim/config/diagnostics.h"
#include "sim/graph/topology_boost.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::published_counts_test {
namespace {

using namespace orrery::fixtures;

/// Links that leave each switch, by its name.
std::map<std::string, int> ports_used(const Topology& drawn) {
  std::map<std::string, int> ports;
  const auto& graph = drawn.graph();
  for (auto [vertex, end] = boost::vertices(graph); vertex != end; ++vertex) {
    if (graph[*vertex].rank >= 0) continue;
    ports[drawn.vertex_name(*vertex)] = static_cast<int>(boost::out_degree(*vertex, graph));
  }
  return ports;
}

std::size_t links_one_way(const FlowModel& network) {
  return network.topology().link_count(LinkKind::kScaleUp) / 2;
}

BytesPerSecond leaving(const FlowModel& network, int rank) {
  BytesPerSecond sum;
  for (const Bundle& bundle : network.topology().bundles()) {
    if (bundle.source == rank && bundle.kind == LinkKind::kScaleUp) sum += bundle.capacity;
  }
  return sum;
}

TEST(PublishedCounts, Dgx1Has24DoubledOrSingleLinksAndSixPortsAGpu) {
  const FlowModel network(dgx_1(), 1);
  EXPECT_EQ(links_one_way(network), 24U);  // 8 x 6 / 2
  for (int gpu = 0; gpu < 8; ++gpu) EXPECT_EQ(leaving(network, gpu), 150_GBps);
  EXPECT_EQ(network.topology().bundles()[network.route(0, 3)[0].bundle].links, 2);
  EXPECT_EQ(network.topology().bundles()[network.route(0, 1)[0].bundle].links, 1);
  EXPECT_EQ(network.fabric().hops(0, 4), 1);
  EXPECT_EQ(network.fabric().hops(0, 5), 2);
}

TEST(PublishedCounts, Dgx2Has12ChipsWith16Of18PortsUsed) {
  const FlowModel network(dgx_2(), 1);
  const auto ports = ports_used(network.drawn());
  EXPECT_EQ(ports.size(), 12U);
  for (const auto& [chip, used] : ports) EXPECT_EQ(used, 16) << chip;
  EXPECT_EQ(links_one_way(network), 16U * 6U + 2U * 6U * 8U / 2U);
  // Bisection 2.4 TB/s both ways: 48 trunks of 25 GB/s.
  EXPECT_EQ(network.topology().bundles()[network.route(0, 8)[1].bundle].capacity, 1200_GBps);
}

TEST(PublishedCounts, DgxA100Has6ChipsWith16Of36PortsUsed) {
  const auto ports = ports_used(FlowModel(dgx_a100(), 1).drawn());
  EXPECT_EQ(ports.size(), 6U);
  for (const auto& [chip, used] : ports) EXPECT_EQ(used, 16) << chip;
}

TEST(PublishedCounts, DgxH100Has4ChipsWith40And32PortsUsed) {
  const std::map<std::string, int> published = {{"system0/nvswitch0", 40},
                                                {"system0/nvswitch1", 32},
                                                {"system0/nvswitch2", 32},
                                                {"system0/nvswitch3", 40}};
  EXPECT_EQ(ports_used(FlowModel(dgx_h100(), 1).drawn()), published);
}

TEST(PublishedCounts, DgxB200Has2ChipsWithAll72PortsUsed) {
  const auto ports = ports_used(FlowModel(dgx_b200(), 1).drawn());
  EXPECT_EQ(ports.size(), 2U);
  for (const auto& [chip, used] : ports) EXPECT_EQ(used, 72) << chip;
}

TEST(PublishedCounts, Mi300xHas28Links) {
  const FlowModel network(mi300x(), 1);
  EXPECT_EQ(links_one_way(network), 28U);
  EXPECT_EQ(leaving(network, 5), 448_GBps);
  EXPECT_EQ(network.route(2, 7).size(), 1U);
}

// Our assumption: 36 chips of 72 ports at 50 GB/s, or 18 planes of 100 GB/s. Both are 28.8 TB/s a
// tray of the 9, both ways.
TEST(PublishedCounts, BothViewsOfVeraRubinNvl72HaveTheBandwidthOfItsTrays) {
  SystemConfig planes = vr_nvl72();
  planes.accelerator.scale_up.links.value = 18;
  set_fabric(planes, "nvswitch", "{links_per_switch: " + list_of(std::vector(18, 1)) + "}");
  for (const SystemConfig& system : {vr_nvl72(), planes}) {
    const FlowModel network(system, 1);
    const Topology drawn = network.drawn();
    BytesPerSecond into_chips;
    for (auto [link, end] = boost::edges(drawn.graph()); link != end; ++link) {
      if (drawn.graph()[boost::source(*link, drawn.graph())].rank >= 0) {
        into_chips += drawn.graph()[*link].capacity;
      }
    }
    EXPECT_NEAR(2 * into_chips.base() / 9, 28.8e12, 1);
    for (const auto& [chip, used] : ports_used(drawn)) EXPECT_EQ(used, 72) << chip;
  }
}

// Our assumption for Kyber: every one of 144 packages of 4 dies has one link to each of 72 chips of
// 144 ports; the dies of a package share its links.
TEST(PublishedCounts, KyberHas576DiesIn144Packages) {
  SystemConfig system = ideal_system(144, 8, 3600_GBps, 72, 1600_Gbitps);
  set_fabric(system, "nvswitch", "{links_per_switch: " + list_of(std::vector(72, 1)) + "}");
  system.accelerator.dies = 4;
  system.accelerator.die_to_die.value = 5_TBps;
  const FlowModel network(system, 1);
  EXPECT_EQ(network.topology().ranks(), 576);
  EXPECT_EQ(links_one_way(network), 144U * 72U);
  int chips = 0;
  for (const auto& [name, used] : ports_used(network.drawn())) {
    if (name.find("nvswitch") == std::string::npos) continue;
    EXPECT_EQ(used, 144) << name;
    ++chips;
  }
  EXPECT_EQ(chips, 72);
  EXPECT_EQ(network.fabric().hops(0, 3), 0);
  EXPECT_EQ(network.fabric().hops(0, 4), 2);
}

// 7 planes x 16 second-level chips.
TEST(PublishedCounts, CloudMatrix384Has112EqualPathsBetweenNodes) {
  const FlowModel network(cm384(), 1);
  const Topology drawn = network.drawn();
  const auto& graph = drawn.graph();
  std::map<Topology::VertexId, int> routes = {{drawn.rank_vertex(0), 1}};
  for (int hop = 0; hop < 4; ++hop) {
    std::map<Topology::VertexId, int> next;
    for (const auto& [at, count] : routes) {
      for (auto [link, end] = boost::out_edges(at, graph); link != end; ++link) {
        next[boost::target(*link, graph)] += count;
      }
    }
    routes = std::move(next);
  }
  EXPECT_EQ(routes[drawn.rank_vertex(767)], 112);
  EXPECT_EQ(network.fabric().hops(0, 767), 4);
}

TEST(PublishedCounts, TpuV4Has4096PackagesOf6LinksAndDiameter24) {
  const FlowModel network(tpu({16, 16, 16}, 50_GBps), 1);
  EXPECT_EQ(network.topology().ranks(), 4096);
  EXPECT_EQ(network.topology().link_count(LinkKind::kScaleUp), 4096U * 6U);
  EXPECT_EQ(network.fabric().hops(0, 8 + 16 * (8 + 16 * 8)), 24);
}

TEST(PublishedCounts, TpuV5pAndV7AreToriOf8960And9216) {
  EXPECT_EQ(FlowModel(tpu({16, 20, 28}, 90_GBps), 1).topology().ranks(), 8960);
  EXPECT_EQ(FlowModel(tpu({16, 16, 36}, 100_GBps), 1).topology().ranks(), 9216);
}

TEST(PublishedCounts, TpuV5eIs16By16WithFourLinksAPackage) {
  const FlowModel network(tpu({16, 16}, 45_GBps), 1);
  EXPECT_EQ(network.topology().link_count(LinkKind::kScaleUp), 256U * 4U);
  EXPECT_EQ(leaving(network, 17), 180_GBps);
}

// Jouppi et al., "TPU v4", ISCA 2023: 64 cubes of 96 optical links, 48 switches with 128 of 136
// ports in use.
TEST(PublishedCounts, TpuV4Has64CubesOn48OpticalSwitches) {
  const SystemConfig system = tpu({16, 16, 16}, 50_GBps, ", cube: 4");
  const TorusOptics optics = torus_optics(system.scale_up);
  EXPECT_EQ(optics.cubes, 64);
  EXPECT_EQ(optics.switches, 48);
  EXPECT_EQ(optics.ports, 128);
  EXPECT_EQ(optics.links_per_cube, 96);
}

// A slice that is not closed loses the links around.
TEST(PublishedCounts, AnOpenAxisHasNoLinksAround) {
  const FlowModel network(tpu({8, 8}, 45_GBps, ", open_axes: [0, 1]"), 1);
  EXPECT_EQ(network.topology().link_count(LinkKind::kScaleUp), 2U * 2U * 8U * 7U);
  EXPECT_EQ(network.fabric().hops(0, 63), 14);
}

TreeShape shape(const SystemConfig& system, int copies, TreeKind kind = {}) {
  return tree_shape(system, rank_layout(system, copies), kind);
}

struct SuperPod {
  int nodes, leaves, spines, cores;
};

void expect_published(const SystemConfig& system, const std::vector<SuperPod>& rows) {
  for (const SuperPod& row : rows) {
    const TreeShape tree = shape(system, row.nodes);
    EXPECT_EQ(tree.leaves(), row.leaves) << row.nodes;
    EXPECT_EQ(tree.pods * tree.spines, row.spines) << row.nodes;
    EXPECT_EQ(tree.cores(), row.cores) << row.nodes;
  }
}

// NVIDIA DGX SuperPOD reference architecture, DGX B200: switches of 64 ports.
TEST(PublishedCounts, SuperPodsOfB200) {
  SystemConfig system = dgx_b200();
  system.scale_out.switch_ports = {64};
  expect_published(system, {{64, 16, 8, 0},
                            {128, 32, 16, 0},
                            {256, 64, 32, 0},
                            {512, 128, 128, 64},
                            {1024, 256, 256, 128},
                            {2048, 512, 512, 256}});
}

// NVIDIA DGX SuperPOD reference architecture, DGX H100: one slot of the first unit is the fabric
// manager's.
TEST(PublishedCounts, SuperPodsOfH100) {
  expect_published(dgx_h100(), {{31, 8, 4, 0}, {63, 16, 8, 0}, {95, 24, 16, 0}, {127, 32, 16, 0}});
}

// NVIDIA DGX SuperPOD reference architecture, DGX B300 XDR: 72 nodes a unit, Q3400 of 144 ports.
TEST(PublishedCounts, SuperPodsOfB300) {
  SystemConfig system = dgx_b200();
  system.scale_out.nodes_per_leaf_group = 72;
  system.scale_out.switch_ports = {144};
  expect_published(system, {{72, 8, 4, 0}, {576, 64, 36, 0}});
}

// DeepSeek-V3 insights (arXiv 2505.09343), table 3: the largest fat trees of 64-port switches.
TEST(PublishedCounts, TreesOf64PortSwitchesReachWhatDeepSeekCounts) {
  SystemConfig system = dgx_h100();
  system.scale_out.switch_ports = {64};
  const TreeShape two_tiers = shape(system, 256);  // 2,048 endpoints
  EXPECT_EQ(two_tiers.switches(), 96);
  EXPECT_EQ(two_tiers.leaves() * two_tiers.leaf_uplinks, 2048);
  const TreeShape planes = shape(system, 2048, {.planes = true});  // 16,384 endpoints
  EXPECT_EQ(planes.planes, 8);
  EXPECT_EQ(planes.switches(), 768);
  EXPECT_EQ(planes.leaves() * planes.leaf_uplinks, 16384);
  const TreeShape three_tiers = shape(system, 8192);  // 65,536 endpoints
  EXPECT_EQ(three_tiers.switches(), 5120);
  EXPECT_EQ(three_tiers.leaves() * three_tiers.leaf_uplinks +
                three_tiers.pods * three_tiers.spines * three_tiers.spine_uplinks,
            131072);
  EXPECT_THROW(shape(system, 8224), config::ConfigError);
}

// Llama 3's 24K cluster (arXiv 2407.21783, section 3.3.1): 16 GPUs a rack, pods of 3,072 with full
// bisection (racks with twice the bandwidth upwards), 8 pods with 1 : 7 between them. Our
// assumption: spines of 576 ports, cores of 128.
TEST(PublishedCounts, Llama3sClusterHas8PodsOf192Racks) {
  SystemConfig system = dgx_h100();
  system.scale_out.kind = "clos";
  system.scale_out.nodes_per_leaf_group = 2;
  system.scale_out.leaf_groups_per_pod = 192;
  system.scale_out.switch_ports = {64, 576, 128};
  system.scale_out.oversubscription = {0.5, 7};
  const TreeShape tree = shape(system, 3072, {.leaf_per_rail = false});
  EXPECT_EQ(tree.leaf_ports, 16);
  EXPECT_EQ(tree.leaf_uplinks, 32);
  EXPECT_EQ(tree.pods, 8);
  EXPECT_EQ(tree.leaves() / tree.pods, 192);
  EXPECT_EQ(tree.leaves() / tree.pods * tree.leaf_ports, 3072);
  EXPECT_NEAR(tree.pod_up.base() * 7, 3072 * 50e9, 1);
  // 3,072 GPUs of every pod that all send to another pod get 50 / 7 GB/s each.
  const FlowModel network(system, 3072);
  std::vector<std::vector<int>> pairs;
  for (int gpu = 0; gpu < 3072; ++gpu) pairs.push_back({gpu, 3072 + gpu});
  const double time =
      network.isolated_time(transfer(TransferKind::kSendReceive, 1_GB, pairs)).base();
  EXPECT_NEAR(time, 5e-6 + 7.0 / 50, 1e-9);
}

// xAI Colossus phase 1: arrays of 64 servers, Spectrum-X SN5600 of 128 ports of 400 Gb/s, three
// tiers. Our assumption: rails.
TEST(PublishedCounts, ColossusHas196ArraysOnThreeTiers) {
  SystemConfig system = dgx_h100();
  system.scale_out.nodes_per_leaf_group = 64;
  system.scale_out.switch_ports = {128};
  const TreeShape tree = shape(system, 12500);
  EXPECT_EQ(tree.groups, 196);
  EXPECT_EQ(tree.leaves(), 196 * 8);
  EXPECT_EQ(tree.pods, 25);
  EXPECT_EQ(tree.cores(), 64 * 16);
}

TEST(PublishedCounts, ALeafWithoutEnoughPortsIsAUserError) {
  SystemConfig system = dgx_h100();
  system.scale_out.switch_ports = {48};
  EXPECT_THROW(shape(system, 64), config::ConfigError);
}

}  // namespace
}  // namespace orrery::published_counts_test
