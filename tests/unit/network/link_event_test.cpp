// SPDX-License-Identifier: Apache-2.0
// Links that degrade, fail and come back while transfers are in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

#include "sim/network/flow_network.h"

namespace orrery::link_event_test {
namespace {

using namespace literals;

constexpr Picoseconds kMillisecond = 1'000'000'000;

Costs make_costs(const std::vector<BytesPerSecond>& links,
                 const std::vector<std::vector<LinkLoad>>& transfers) {
  Costs costs;
  costs.links = links;
  for (const auto& loads : transfers) {
    TransferCost cost;
    cost.loads = loads;
    costs.transfers.push_back(cost);
  }
  return costs;
}

TEST(LinkEvent, AfterADegradeTheRestTakesLonger) {
  // 4 MB at 1 GB/s; after 1 ms 3 MB are left, at 0.25 GB/s: 12 ms more.
  FlowNetwork network(make_costs({1_GBps}, {{{0, 4e6}}}));
  network.start(0, 0);
  network.settle(0);
  network.set_capacity(0, BytesPerSecond(0.25e9));
  network.settle(kMillisecond);
  EXPECT_EQ(network.next_end(), 13 * kMillisecond);
}

TEST(LinkEvent, ADegradeLeavesItsShareOfOtherLinksToOthers) {
  // Both have 0.5 GB/s of link 0; with link 1 at 0.2 GB/s, transfer 1 gets 0.8 GB/s.
  FlowNetwork network(make_costs({1_GBps, 1_GBps}, {{{0, 1e6}, {1, 1e6}}, {{0, 1e6}}}));
  network.start(0, 0);
  network.start(1, 0);
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.rate(1).base(), 0.5e9);
  network.set_capacity(1, BytesPerSecond(0.2e9));
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.rate(0).base(), 0.2e9);
  EXPECT_DOUBLE_EQ(network.rate(1).base(), 0.8e9);
}

TEST(LinkEvent, ATransferStandsStillWhileItsLinkIsDown) {
  FlowNetwork network(make_costs({1_GBps}, {{{0, 4e6}}}));
  network.start(0, 0);
  network.settle(0);
  network.set_capacity(0, BytesPerSecond(0.0));
  network.settle(kMillisecond);
  EXPECT_EQ(network.next_end(), kNever);
  ASSERT_TRUE(network.stall().has_value());
  EXPECT_EQ(network.stall()->transfer, 0U);
  EXPECT_EQ(network.stall()->link, 0U);
  network.set_capacity(0, 1_GBps);
  network.settle(5 * kMillisecond);
  EXPECT_FALSE(network.stall().has_value());
  EXPECT_EQ(network.next_end(), 8 * kMillisecond);
}

TEST(LinkEvent, ATransferThatStartsOnADeadLinkWaitsForIt) {
  FlowNetwork network(make_costs({1_GBps}, {{{0, 1e6}}, {{0, 1e6}}}));
  network.set_capacity(0, BytesPerSecond(0.0));
  network.settle(0);
  network.start(0, 0);
  network.start(1, 0);
  network.settle(0);
  EXPECT_EQ(network.next_end(), kNever);
  network.set_capacity(0, 1_GBps);
  network.settle(kMillisecond);
  EXPECT_EQ(network.next_end(), 3 * kMillisecond);
}

TEST(LinkEvent, OfMergedLinksTheSlowestCounts) {
  FlowNetwork network(make_costs({2_GBps, 1_GBps}, {{{0, 4e6}, {1, 4e6}}}));
  EXPECT_EQ(network.link_count(), 1U);
  network.start(0, 0);
  network.settle(0);
  network.set_capacity(1, 4_GBps);
  network.settle(kMillisecond);  // 3 MB left at 2 GB/s
  EXPECT_EQ(network.next_end(), 2'500'000'000U);
}

TEST(LinkEvent, ARerouteKeepsThePartThatIsLeft) {
  // Half is done when the route changes to one that twice as many bytes have to take.
  FlowNetwork network(make_costs({1_GBps, 1_GBps}, {{{0, 4e6}}}), FlowNetwork::Links::kSeparate);
  network.start(0, 0);
  network.settle(0);
  network.set_capacity(0, BytesPerSecond(0.0));
  network.reroute({0, {{1, 8e6}}}, 2 * kMillisecond);
  network.settle(2 * kMillisecond);
  EXPECT_FALSE(network.stall().has_value());
  EXPECT_EQ(network.next_end(), 6 * kMillisecond);
}

TEST(LinkEvent, AReroutedTransferFreesItsOldLinks) {
  FlowNetwork network(make_costs({1_GBps, 1_GBps}, {{{0, 4e6}}, {{0, 4e6}}}),
                      FlowNetwork::Links::kSeparate);
  network.start(0, 0);
  network.start(1, 0);
  network.settle(0);
  network.reroute({0, {{1, 4e6}}}, 0);
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.rate(0).base(), 1e9);
  EXPECT_DOUBLE_EQ(network.rate(1).base(), 1e9);
  EXPECT_THROW(network.reroute({0, {}}, 0), std::logic_error);
  FlowNetwork merged(make_costs({1_GBps, 1_GBps}, {{{0, 4e6}}}));
  EXPECT_THROW(merged.reroute({0, {{1, 4e6}}}, 0), std::logic_error);
}

TEST(LinkEvent, BytesAreConservedWhateverTheLinksDo) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0.1, 1.0);
    constexpr std::uint32_t kLinks = 8, kTransfers = 12;
    std::vector<std::vector<LinkLoad>> loads(kTransfers);
    for (auto& route : loads) {
      route = {{static_cast<std::uint32_t>(random() % kLinks), 1e6 * uniform(random)},
               {static_cast<std::uint32_t>(random() % kLinks), 1e6 * uniform(random)}};
    }
    const Costs costs = make_costs(std::vector<BytesPerSecond>(kLinks, 1_GBps), loads);
    FlowNetwork network(costs, FlowNetwork::Links::kSeparate);
    std::vector<double> carried(kTransfers, 0), rates(kTransfers, 0), sizes(kTransfers, 0);
    for (std::uint32_t t = 0; t < kTransfers; ++t) {
      network.start(t, 0);
      sizes[t] = network.remaining(t, 0).base();
    }
    network.settle(0);
    Picoseconds before = 0, next_event = 0;
    int events = 0;
    while (network.in_flight() > 0) {
      for (std::uint32_t t = 0; t < kTransfers; ++t) {
        rates[t] = network.rate(t).base();
      }
      const bool event = events < 50 && next_event <= network.next_end();
      const Picoseconds now = event ? next_event : network.next_end();
      if (event) {
        const auto link = static_cast<std::uint32_t>(random() % kLinks);
        const bool down = random() % 4 == 0 && ++events < 45;
        network.set_capacity(link, BytesPerSecond(down ? 0 : 1e9 * uniform(random)));
        next_event += random() % (kMillisecond / 4);
        if (++events >= 50) {
          for (std::uint32_t l = 0; l < kLinks; ++l) network.set_capacity(l, 1_GBps);
        }
      }
      while (network.next_end() <= now) {
        network.end_next();
      }
      for (std::uint32_t t = 0; t < kTransfers; ++t) {
        carried[t] += rates[t] * to_seconds(now - before).base();
      }
      before = now;
      network.settle(now);
      ASSERT_LE(network.audit(), 1e-9) << "seed " << seed;
    }
    for (std::uint32_t t = 0; t < kTransfers; ++t) {
      ASSERT_NEAR(carried[t], sizes[t], sizes[t] * 1e-9 + 0.001) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace orrery::link_event_test
