// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/graph/topology_boost.h"
#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::nvswitch_test {
namespace {

using namespace orrery::fixtures;

std::map<std::string, int> links_by_switch(const Topology& topology, int rank) {
  std::map<std::string, int> count;
  const auto& graph = topology.graph();
  for (auto [link, end] = boost::out_edges(topology.rank_vertex(rank), graph); link != end;
       ++link) {
    ++count[topology.vertex_name(boost::target(*link, graph))];
  }
  return count;
}

TEST(NvSwitch, Nvl72Has1296LinksEachWay) {
  const Topology topology = FlowModel(nvl72(), 1).drawn();
  // 72 GPUs x 18 chips = 1296 one way. A link is 4 pairs of copper wires for both ways: 1296 x 4 =
  // 5184 cables.
  const std::size_t one_way = topology.link_count(LinkKind::kScaleUp) / 2;
  EXPECT_EQ(topology.link_count(LinkKind::kScaleUp), 2U * 1296U);
  EXPECT_EQ(one_way * 4, 5184U);
  EXPECT_EQ(topology.vertices(), 72U + 18U);
  for (auto [link, end] = boost::edges(topology.graph()); link != end; ++link) {
    EXPECT_EQ(topology.graph()[*link].capacity, 50_GBps);
  }
}

TEST(NvSwitch, EveryChipOfNvl72Uses72Ports) {
  const Topology topology = FlowModel(nvl72(), 1).drawn();
  const auto& graph = topology.graph();
  int switches = 0;
  for (auto [vertex, end] = boost::vertices(graph); vertex != end; ++vertex) {
    if (graph[*vertex].rank >= 0) continue;
    ++switches;
    EXPECT_EQ(boost::out_degree(*vertex, graph), 72U) << graph[*vertex].name;
  }
  EXPECT_EQ(switches, 18);
}

TEST(NvSwitch, DgxH100SpreadsItsLinksFiveFourFourFive) {
  const FlowModel network(dgx_h100(), 1);
  for (int gpu = 0; gpu < 8; ++gpu) {
    const std::map<std::string, int> expected = {{"system0/nvswitch0", 5},
                                                 {"system0/nvswitch1", 4},
                                                 {"system0/nvswitch2", 4},
                                                 {"system0/nvswitch3", 5}};
    EXPECT_EQ(links_by_switch(network.drawn(), gpu), expected);
  }
}

TEST(NvSwitch, DgxA100HasTwoLinksToEachOfSixChips) {
  const FlowModel network(dgx_a100(), 1);
  const auto links = links_by_switch(network.drawn(), 0);
  EXPECT_EQ(links.size(), 6U);
  for (const auto& [chip, count] : links) EXPECT_EQ(count, 2) << chip;
  EXPECT_EQ(network.topology().link_count(LinkKind::kScaleUp), 2U * 8U * 12U);
}

TEST(NvSwitch, VeraRubinNvl72HasOneLinkToEachOf36Chips) {
  const FlowModel network(vr_nvl72(), 1);
  EXPECT_EQ(network.topology().link_count(LinkKind::kScaleUp), 2U * 72U * 36U);
  // 36 x 50 GB/s = 1.8 TB/s one way, half of the published 3.6 TB/s both ways.
  EXPECT_EQ(network.topology().bundles()[network.route(0, 1)[0].bundle].capacity, 1800_GBps);
}

TEST(NvSwitch, AnyTwoGpusAreOneSwitchApart) {
  const FlowModel network(nvl72(), 1);
  const Route route = network.route(3, 71);
  ASSERT_EQ(route.size(), 2U);
  EXPECT_EQ(network.topology().bundle_name(route[0].bundle),
            "system0/node0/accelerator3->nvswitches");
  EXPECT_EQ(network.topology().bundle_name(route[1].bundle),
            "nvswitches->system0/node17/accelerator3");
  EXPECT_EQ(network.topology().bundles()[route[0].bundle].capacity, 900_GBps);
}

TEST(NvSwitch, LinksThatDoNotAddUpAreAUserError) {
  SystemConfig system = dgx_h100();
  set_fabric(system, "nvswitch", "{links_per_switch: [5, 4, 4, 4]}");
  EXPECT_THROW(FlowModel(system, 1), config::ConfigError);
}

TEST(NvSwitch, AnUnknownTopologyIsAUserErrorThatListsTheKnown) {
  SystemConfig system = dgx_h100();
  try {
    system.scale_up.set_kind("nvswich");
    FAIL() << "no error";
  } catch (const config::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'nvswich'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("mesh, none, nvswitch"), std::string::npos);
  }
}

}  // namespace
}  // namespace orrery::nvswitch_test
