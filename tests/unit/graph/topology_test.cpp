// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/topology.h"
#include "sim/graph/topology_boost.h"

#include <gtest/gtest.h>

#include <string>

namespace orrery::topology_test {
namespace {

using namespace orrery::literals;

TEST(Topology, RanksAreNumberedInTheOrderTheyAreAdded) {
  Topology topology;
  topology.add_rank("a");
  topology.add_switch("s");
  topology.add_rank("b");
  EXPECT_EQ(topology.ranks(), 2);
  EXPECT_EQ(topology.rank_name(0), "a");
  EXPECT_EQ(topology.rank_name(1), "b");
  EXPECT_EQ(topology.graph()[topology.rank_vertex(1)].rank, 1);
  EXPECT_THROW(topology.rank_vertex(2), std::out_of_range);
}

TEST(Topology, LinksAreCountedByTheirBundlesDrawnOrNot) {
  Topology topology;
  const auto gpu = topology.add_rank("gpu");
  const auto chip = topology.add_switch("chip");
  const BundleId bundle = topology.add_bundle("gpu", "chip", {LinkKind::kScaleUp, 75_GBps, 3, 0});
  EXPECT_EQ(topology.link_count(LinkKind::kScaleUp), 3U);
  EXPECT_EQ(topology.link_count(LinkKind::kScaleOut), 0U);
  topology.add_link(gpu, chip, 25_GBps, bundle);
  EXPECT_EQ(topology.link_count(LinkKind::kScaleUp), 3U);
  EXPECT_EQ(topology.bundles()[bundle].capacity, 75_GBps);
}

TEST(Topology, EndsOfBundlesAreGivenByNameOrByItsNumber) {
  Topology topology;
  topology.add_rank("gpu");
  const NameId gpu = topology.rank_name_id(0), chip = topology.name("chip");
  const BundleId up = topology.add_bundle(gpu, chip, {});
  const BundleId down = topology.add_bundle("chip", "gpu", {});
  EXPECT_EQ(topology.bundle_name(up), "gpu->chip");
  EXPECT_EQ(topology.bundle_ends(down).from, chip);
  EXPECT_EQ(topology.bundle_ends(down).to, gpu);
  EXPECT_EQ(topology.names().size(), 2U);
}

TEST(Topology, ALinkIsNamedAfterItsEnds) {
  Topology topology;
  const auto gpu = topology.add_rank("system0/node0/accelerator3");
  const auto chip = topology.add_switch("system0/nvswitch7");
  topology.add_link(gpu, chip, 50_GBps,
                    topology.add_bundle("gpu", "up", {LinkKind::kScaleUp, 50_GBps, 1, 0}));
  const auto link = *boost::edges(topology.graph()).first;
  EXPECT_EQ(link_name(topology, link), "system0/node0/accelerator3->system0/nvswitch7");
  EXPECT_EQ(link_kind(topology, link), LinkKind::kScaleUp);
}

TEST(Topology, ParallelLinksStayApart) {
  Topology topology;
  const auto gpu = topology.add_rank("gpu");
  const auto chip = topology.add_switch("chip");
  const BundleId bundle = topology.add_bundle("gpu", "chip", {LinkKind::kScaleUp, 50_GBps, 2, 0});
  topology.add_link(gpu, chip, 25_GBps, bundle);
  topology.add_link(gpu, chip, 25_GBps, bundle);
  EXPECT_EQ(boost::num_edges(topology.graph()), 2U);
  EXPECT_EQ(boost::out_degree(gpu, topology.graph()), 2U);
}

TEST(Topology, ABundleThatDoesNotExistIsABug) {
  Topology topology;
  const auto gpu = topology.add_rank("gpu");
  EXPECT_THROW(topology.add_link(gpu, gpu, 1_GBps, 0), std::out_of_range);
}

}  // namespace
}  // namespace orrery::topology_test
