// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/rings.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/models/transfers/flow_checks.h"
#include "tests/unit/models/transfers/test_systems.h"

namespace orrery::rings_test {
namespace {

using namespace orrery::fixtures;

using Hops = std::map<std::pair<int, int>, int>;

/// How many of the rings pass each hop, one way. Every ring must pass every member once.
Hops hops_of(const RingOrders& rings, int members) {
  Hops hops;
  for (const std::vector<int>& ring : rings) {
    EXPECT_EQ(std::set<int>(ring.begin(), ring.end()).size(), static_cast<std::size_t>(members));
    EXPECT_EQ(ring.size(), static_cast<std::size_t>(members));
    for (std::size_t i = 0; i < ring.size(); ++i) ++hops[{ring[i], ring[(i + 1) % ring.size()]}];
  }
  return hops;
}

/// @param dead the name of a bundle that is down
RingOrders rings_of(const SystemConfig& system, const std::vector<int>& group,
                    const std::string& dead = "") {
  Topology topology;
  const auto fabric = build_fabric(system, rank_layout(system, 1), topology);
  for (BundleId bundle = 0; bundle < topology.bundles().size(); ++bundle)
    if (topology.bundle_name(bundle) == dead) fabric->degrade(bundle, 0, topology);
  return fabric->rings(group);
}

LinkTable table(int members, const std::vector<std::pair<int, int>>& links) {
  LinkTable table(members);
  for (const auto& [a, b] : links) table.set(a, b, table.at(a, b) + 1);
  return table;
}

LinkTable full_mesh(int members) {
  LinkTable links(members);
  for (int a = 0; a < members; ++a)
    for (int b = 0; b < a; ++b) links.set(a, b, 1);
  return links;
}

TEST(Rings, OnDgx1TheyUseEveryLinkOnceEachWay) {
  // 6 links a GPU: 3 rings both ways (NVIDIA DGX-1 with Tesla V100 system architecture, WP-08437).
  const RingOrders rings = rings_of(dgx_1(), range(0, 8));
  ASSERT_EQ(rings.size(), 6U);
  Hops hops = hops_of(rings, 8);
  int links = 0;
  const SystemConfig system = dgx_1();
  for (const WireConfig& wire : wires_of(system)) {
    const int from = wire.from.back() - '0', to = wire.to.back() - '0';
    EXPECT_EQ((hops[{from, to}]), wire.links) << wire.from << " to " << wire.to;
    EXPECT_EQ((hops[{to, from}]), wire.links) << wire.to << " to " << wire.from;
    links += 2 * wire.links;
  }
  EXPECT_EQ(links, 6 * 8);  // hops of all rings: none goes elsewhere
}

TEST(Rings, AQuadOfDgx1HasTwoBothWays) {
  // 0 to 3: single links, two pairs of double ones; 4 of the 6 links of a GPU.
  EXPECT_EQ(rings_of(dgx_1(), range(0, 4)).size(), 4U);
}

TEST(Rings, RanksWithoutARingOfDirectLinksGoByRank) {
  EXPECT_TRUE(rings_of(dgx_1(), {0, 1, 6}).empty());  // 0 and 6 have no link
}

TEST(Rings, LinksToHostsDoNotCountAndSwitchesMakeThemNeedless) {
  // As a file of NCCL describes it: NVLink from GPU to GPU, PCIe to the processor.
  SystemConfig system = dgx_1();
  std::vector<WireConfig> wires = wires_of(system);
  const auto join_all = [&](const std::string& to, LinkKind kind) {
    for (int gpu = 0; gpu < 8; ++gpu)
      wires.push_back({"accelerator" + std::to_string(gpu), to, kind, 1, 12_GBps});
    set_wires(system, "graph", wires);
  };
  join_all("cpu0", LinkKind::kHost);
  EXPECT_EQ(rings_of(system, range(0, 8)).size(), 6U);
  join_all("nvswitch0", LinkKind::kScaleUp);
  EXPECT_TRUE(rings_of(system, range(0, 8)).empty());
}

TEST(Rings, AFullMeshUsesAllLinksAlike) {
  for (int members = 3; members <= kMostRingMembers; ++members) {
    const RingOrders rings = disjoint_rings(full_mesh(members));
    ASSERT_EQ(rings.size(), static_cast<std::size_t>(2 * (members - 1))) << members;
    const Hops hops = hops_of(rings, members);
    EXPECT_EQ(hops.size(), static_cast<std::size_t>(members * (members - 1)));
    for (const auto& [hop, count] : hops) EXPECT_EQ(count, 2) << members;
  }
}

TEST(Rings, AreAsManyAsAGraphHas) {
  // The cube has 3 links a corner: one ring both ways. Two rings of 5 share no link: 0 1 2 3 4 and
  // 0 2 4 1 3, here without the full mesh's symmetry because one link is double.
  const LinkTable cube = table(8, {{0, 1},
                                   {1, 3},
                                   {3, 2},
                                   {2, 0},
                                   {4, 5},
                                   {5, 7},
                                   {7, 6},
                                   {6, 4},
                                   {0, 4},
                                   {1, 5},
                                   {2, 6},
                                   {3, 7}});
  EXPECT_EQ(disjoint_rings(cube).size(), 2U);
  LinkTable five = full_mesh(5);
  five.set(0, 1, 2);
  EXPECT_EQ(disjoint_rings(five).size(), 4U);
}

TEST(Rings, NoneWhereRankOrderCarriesAsMuch) {
  EXPECT_TRUE(disjoint_rings(table(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}})).empty());
}

TEST(Rings, NoneThroughATreeOrAlone) {
  EXPECT_TRUE(disjoint_rings(table(4, {{0, 1}, {1, 2}, {1, 3}})).empty());
  EXPECT_TRUE(disjoint_rings(LinkTable(2)).empty());
  EXPECT_TRUE(disjoint_rings(LinkTable(0)).empty());
  EXPECT_TRUE(disjoint_rings(full_mesh(kMostRingMembers + 1)).empty());
}

TEST(Rings, TheSearchEndsWithTheMostThatItHasSeen) {
  // 16 members, 8 links each: more cycles than 200,000 steps visit.
  LinkTable links(16);
  for (int a = 0; a < 16; ++a)
    for (const int hop : {2, 3, 5, 7}) links.set(a, (a + hop) % 16, 1);
  const RingOrders rings = disjoint_rings(links);
  EXPECT_GE(rings.size(), 2U * 3);
  for (const auto& [hop, count] : hops_of(rings, 16))
    EXPECT_LE(count, links.at(hop.first, hop.second));
  EXPECT_EQ(rings, disjoint_rings(links));
}

TEST(Rings, GoAroundALinkThatIsDown) {
  const std::string link = "system0/node0/accelerator0->system0/node0/accelerator4";
  const RingOrders rings = rings_of(dgx_1(), range(0, 8), link);
  ASSERT_FALSE(rings.empty());
  Hops hops = hops_of(rings, 8);
  EXPECT_EQ((hops[{0, 4}]), 0);
  EXPECT_EQ((hops[{4, 0}]), 0);  // a ring and its reverse go together
}

TEST(Rings, BehindSwitchesRankOrderStays) {
  for (const SystemConfig& system : {dgx_h100(), dgx_2(), nvl72(), unified_bus(3, 4, 3, 8)}) {
    const FlowModel network(system, 2);
    const std::vector<int> group = range(0, network.topology().ranks());
    const Transfer all = transfer(TransferKind::kAllReduce, 1_MB, {group});
    EXPECT_TRUE(network.collective(all, group).rings.empty());
  }
}

}  // namespace
}  // namespace orrery::rings_test
