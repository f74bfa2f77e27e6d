// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/link_loads.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::link_loads_test {
namespace {

std::vector<std::uint32_t> links_of(const LinkLoads& loads) {
  std::vector<std::uint32_t> links;
  for (const LinkLoad& load : loads) links.push_back(load.link);
  return links;
}

TEST(LinkLoads, NeighboursThatCarryTheSameAreOneRun) {
  LinkLoads loads;
  for (std::uint32_t link = 10; link < 1010; ++link) loads.push_back({link, 3, 2});
  EXPECT_EQ(loads.size(), 1000U);
  EXPECT_EQ(loads.runs(), 1U);
  std::uint32_t link = 10;
  for (const LinkLoad& load : loads) {
    EXPECT_EQ(load.link, link++);
    EXPECT_EQ(load.bytes, 3);
    EXPECT_EQ(load.payload, 2);
  }
  EXPECT_EQ(link, 1010U);
}

TEST(LinkLoads, KeepTheOrderInWhichTheyCame) {
  // A gap, other bytes, another payload, a link again, and one before it.
  const LinkLoads loads = {{1, 5}, {3, 5}, {4, 6}, {5, 6, 1}, {5, 6, 1}, {2, 6, 1}};
  EXPECT_EQ(loads.runs(), 6U);
  EXPECT_EQ(links_of(loads), (std::vector<std::uint32_t>{1, 3, 4, 5, 5, 2}));
  EXPECT_EQ(loads.front().bytes, 5);
}

TEST(LinkLoads, AreChangedOneByOne) {
  LinkLoads loads = {{0, 8}, {1, 8}, {2, 8}};
  loads.change([](LinkLoad& load) { load.bytes = load.link == 1 ? 4 : load.bytes; });
  EXPECT_EQ(loads.size(), 3U);
  EXPECT_EQ(loads.runs(), 3U);
  loads.change([](LinkLoad& load) { load.bytes = 1; });
  EXPECT_EQ(loads.runs(), 1U);
  EXPECT_EQ(links_of(loads), (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(LinkLoads, NoneAreEmpty) {
  const LinkLoads loads;
  EXPECT_TRUE(loads.empty());
  EXPECT_EQ(loads.begin(), loads.end());
}

}  // namespace
}  // namespace orrery::link_loads_test
