// SPDX-License-Identifier: Apache-2.0
#include "sim/network/flow_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace orrery::flow_network_test {
namespace {

using namespace literals;

Costs make_costs(const std::vector<BytesPerSecond>& links,
                 const std::vector<std::vector<LinkLoad>>& transfers) {
  Costs costs;
  costs.links = links;
  for (const auto& loads : transfers) {
    costs.transfers.push_back({0, loads});
  }
  return costs;
}

TEST(FlowNetwork, ATransferAloneHasAllOfItsSlowestLink) {
  // Link 1 carries half of the bytes at 1 GB/s, so the whole goes at 2 GB/s: 8 GB take 4 s.
  FlowNetwork network(make_costs({10_GBps, 1_GBps}, {{{0, 8e9}, {1, 4e9}}}));
  network.start(0, 5);
  network.settle(5);
  EXPECT_DOUBLE_EQ(network.rate(0).base(), 2e9);
  EXPECT_EQ(network.next_end(), 5U + 4'000'000'000'000U);
  EXPECT_EQ(network.end_next(), 0U);
  EXPECT_EQ(network.next_end(), kNever);
  EXPECT_EQ(network.rate(0).base(), 0);
}

TEST(FlowNetwork, TwoFlowsOnOneLinkGetHalfEach) {
  FlowNetwork network(make_costs({10_GBps}, {{{0, 1e9}}, {{0, 7e9}}}));
  network.start(0, 0);
  network.start(1, 0);
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.rate(0).base(), 5e9);
  EXPECT_DOUBLE_EQ(network.rate(1).base(), 5e9);
}

TEST(FlowNetwork, AFlowHeldBackElsewhereLeavesItsShareToTheOthers) {
  // Bertsekas and Gallager's picture: flow 0 crosses both links, 1 shares link 0, 2 and 3 share
  // link 1. Link 1 fills first at 9/3 = 3 GB/s; flow 1 gets the remaining 12 - 3 = 9 GB/s of link
  // 0.
  FlowNetwork network(
      make_costs({12_GBps, 9_GBps}, {{{0, 1e9}, {1, 1e9}}, {{0, 1e9}}, {{1, 1e9}}, {{1, 1e9}}}));
  for (std::uint32_t t = 0; t < 4; ++t) {
    network.start(t, 0);
  }
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.rate(0).base(), 3e9);
  EXPECT_DOUBLE_EQ(network.rate(1).base(), 9e9);
  EXPECT_DOUBLE_EQ(network.rate(2).base(), 3e9);
  EXPECT_DOUBLE_EQ(network.rate(3).base(), 3e9);
}

TEST(FlowNetwork, ALaterStartSlowsWhatIsInFlightFromThenOn) {
  FlowNetwork network(make_costs({1_GBps}, {{{0, 3e6}}, {{0, 1e6}}}));
  network.start(0, 0);
  network.settle(0);
  EXPECT_EQ(network.next_end(), 3'000'000'000U);
  network.start(1, 1'000'000'000);  // after 1 ms 2 MB are left; both then have 0.5 GB/s
  network.settle(1'000'000'000);
  EXPECT_DOUBLE_EQ(network.remaining(0, 1'000'000'000).base(), 2e6);
  EXPECT_EQ(network.next_end(), 3'000'000'000U);
  EXPECT_EQ(network.end_next(), 1U);
  network.settle(3'000'000'000);  // 1 MB left at 1 GB/s
  EXPECT_EQ(network.next_end(), 4'000'000'000U);
}

TEST(FlowNetwork, RejectsImpossibleLoads) {
  const auto make = [](double capacity, LinkLoad load) {
    FlowNetwork network(make_costs({BytesPerSecond(capacity)}, {{load}}));
  };
  EXPECT_THROW(make(1e9, {1, 5}), std::logic_error);
  EXPECT_THROW(make(1e9, {0, -5}), std::logic_error);
  EXPECT_THROW(make(1e9, {0, std::numeric_limits<double>::infinity()}), std::logic_error);
  EXPECT_THROW(make(0, {0, 5}), std::logic_error);
  EXPECT_THROW(make(std::numeric_limits<double>::infinity(), {0, 5}), std::logic_error);
  EXPECT_NO_THROW(make(0, {0, 0}));
}

TEST(FlowNetwork, LinksWithEqualLoadsAreMergedToTheSlowest) {
  const Costs costs = make_costs({4_GBps, 3_GBps, 5_GBps, 1_GBps},
                                 {{{0, 6e9}, {1, 6e9}, {2, 6e9}}, {{0, 1e9}, {1, 1e9}, {2, 2e9}}});
  FlowNetwork network(costs);
  EXPECT_EQ(network.link_count(), 2U);  // {0, 1} and {2}; nothing loads link 3
  network.start(0, 0);
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.rate(0).base(), 3e9);
}

TEST(FlowNetwork, LoadsOfOneLinkInTwoPiecesAddUp) {
  FlowNetwork network(make_costs({1_GBps}, {{{0, 1e9}, {0, 1e9}}}));
  network.start(0, 0);
  EXPECT_EQ(network.next_end(), 2'000'000'000'000U);
}

/// A random network with tiers of equal links, so that there is something to merge.
Costs random_costs(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  const std::size_t links = 3 + random() % 20;
  std::vector<BytesPerSecond> capacities;
  for (std::size_t l = 0; l < links; ++l) {
    capacities.emplace_back(random() % 2 == 0 ? 1e9 : 1e9 * uniform(random));
  }
  std::vector<std::vector<LinkLoad>> transfers(2 + random() % 30);
  for (auto& loads : transfers) {
    const double bytes = 1e6 * uniform(random);
    const std::uint32_t first = static_cast<std::uint32_t>(random() % links);
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % (links - first));
    for (std::uint32_t l = first; l < first + count; ++l) {
      loads.push_back({l, random() % 3 == 0 ? bytes * uniform(random) : bytes});
    }
  }
  return make_costs(capacities, transfers);
}

double largest_load(const TransferCost& transfer) {
  double largest = 0;
  for (const LinkLoad& load : transfer.loads) {
    largest = std::max(largest, load.bytes);
  }
  return largest;
}

/// No link carries more than it can, and every transfer in flight has a full link on which no other
/// is faster; worked out from the loads, without the network's own idea of its links.
void audit(const FlowNetwork& network, const Costs& costs) {
  std::vector<double> usage(costs.links.size(), 0);
  std::vector<double> fastest(costs.links.size(), 0);
  for (std::uint32_t t = 0; t < costs.transfers.size(); ++t) {
    const double rate = network.rate(t).base();
    for (const LinkLoad& load : costs.transfers[t].loads) {
      usage[load.link] += rate * load.bytes / largest_load(costs.transfers[t]);
      fastest[load.link] = std::max(fastest[load.link], rate);
    }
  }
  for (std::uint32_t l = 0; l < usage.size(); ++l) {
    ASSERT_LE(usage[l], network.capacity(l).base() * (1 + 1e-9));
  }
  for (std::uint32_t t = 0; t < costs.transfers.size(); ++t) {
    const double rate = network.rate(t).base();
    const double limit = costs.transfers[t].rate_limit.base();
    ASSERT_TRUE(limit == 0 || rate <= limit * (1 + 1e-9));
    const auto& loads = costs.transfers[t].loads;
    const bool bottlenecked = std::any_of(loads.begin(), loads.end(), [&](const LinkLoad& load) {
      return usage[load.link] >= network.capacity(load.link).base() * (1 - 1e-9) &&
             rate >= fastest[load.link] * (1 - 1e-9);
    });
    ASSERT_TRUE(rate == 0 || bottlenecked || (limit > 0 && rate >= limit * (1 - 1e-9)))
        << "transfer " << t;
  }
}

/// Starts the transfers one by one in random steps and runs to the end; `check` sees every settled
/// state.
template <class Check>
std::vector<Picoseconds> drive(FlowNetwork& network, std::size_t transfers, std::uint64_t seed,
                               const Check& check) {
  std::mt19937_64 random(seed);
  std::vector<Picoseconds> ends(transfers);
  Picoseconds next_start = 0;
  std::uint32_t started = 0;
  while (started < transfers || network.next_end() != kNever) {
    const Picoseconds now = std::min(started < transfers ? next_start : kNever, network.next_end());
    while (network.next_end() <= now) {
      ends[network.end_next()] = now;
    }
    while (started < transfers && next_start <= now) {
      network.start(started++, now);
      next_start += random() % 3 == 0 ? 0 : random() % 1'000'000'000;
    }
    network.settle(now);
    check(now);
  }
  return ends;
}

TEST(FlowNetwork, EveryTransferHasAFullLinkOnWhichItIsFastest) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const Costs costs = random_costs(random);
    FlowNetwork network(costs);
    drive(network, costs.transfers.size(), seed, [&](Picoseconds) {
      audit(network, costs);
      ASSERT_LE(network.audit(), 1e-9);
    });
  }
}

/// Many small groups of hosts behind switches, with some traffic between the groups and some
/// transfers that are limited: where a change concerns few.
Costs clustered_costs(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0.1, 1.0);
  constexpr std::uint32_t kGroups = 40, kLinks = 8;
  std::vector<BytesPerSecond> capacities;
  for (std::uint32_t l = 0; l < kGroups * kLinks; ++l) {
    capacities.emplace_back(1e9 * uniform(random));
  }
  Costs costs = make_costs(capacities, {});
  for (int t = 0; t < 600; ++t) {
    const auto group = static_cast<std::uint32_t>(random() % kGroups);
    TransferCost cost;
    const auto out = static_cast<std::uint32_t>(random() % (kLinks / 2));
    const auto in = static_cast<std::uint32_t>(kLinks / 2 + random() % (kLinks / 2));
    cost.loads = {{group * kLinks + out, 2e7 * uniform(random)},
                  {group * kLinks + in, 2e7 * uniform(random)}};
    if (random() % 10 == 0) {
      cost.loads.push_back({(group + 1) % kGroups * kLinks + out, 2e7});
    }
    if (random() % 5 == 0) {
      cost.rate_limit = BytesPerSecond(2e8 * uniform(random));
    }
    costs.transfers.push_back(cost);
  }
  return costs;
}

TEST(FlowNetwork, ALocalSolutionIsThatOfTheWholeComponent) {
  std::uint64_t local_work = 0, component_work = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    const Costs costs = clustered_costs(random);
    FlowNetwork local(costs);
    FlowNetwork component(costs, FlowNetwork::Links::kMerged, FlowNetwork::Resolve::kComponent);
    const auto check = [&](Picoseconds) {
      audit(local, costs);
      ASSERT_LE(local.audit(), 1e-9);
    };
    const auto a = drive(local, costs.transfers.size(), seed, check);
    const auto b = drive(component, costs.transfers.size(), seed, [](Picoseconds) {});
    for (std::size_t t = 0; t < a.size(); ++t) {
      // Sums in another order may round a time to the next picosecond.
      ASSERT_NEAR(static_cast<double>(a[t]), static_cast<double>(b[t]), 1) << "seed " << seed;
    }
    local_work += local.rates_computed();
    component_work += component.rates_computed();
  }
  EXPECT_LT(local_work * 2, component_work);
}

/// An all-to-all of 20 in which every message has its own size: a change concerns half of all.
Costs dense_costs(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0.9, 1.1);
  constexpr std::uint32_t kRanks = 20;
  Costs costs = make_costs(std::vector<BytesPerSecond>(kRanks * 2, 10_GBps), {});
  for (std::uint32_t from = 0; from < kRanks; ++from) {
    for (std::uint32_t to = 0; to < kRanks; ++to) {
      const double bytes = 1e8 * uniform(random);
      TransferCost cost;
      cost.loads = {{from, bytes}, {kRanks + to, bytes}};
      costs.transfers.push_back(cost);
    }
  }
  return costs;
}

TEST(FlowNetwork, DenseTrafficIsSolvedFromTheLowestRateConcerned) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::mt19937_64 random(seed);
    const Costs costs = dense_costs(random);
    FlowNetwork local(costs);
    FlowNetwork component(costs, FlowNetwork::Links::kMerged, FlowNetwork::Resolve::kComponent);
    std::mt19937_64 events(seed);
    // Links degrade and recover on the way, the same in both.
    const auto disturb = [&events](FlowNetwork& network, Picoseconds now) {
      if (events() % 10 == 0) {
        const auto link = static_cast<std::uint32_t>(events() % 40);
        network.set_capacity(link, events() % 3 == 0 ? 2_GBps : 10_GBps);
        network.settle(now);
      }
    };
    const auto a = drive(local, costs.transfers.size(), seed, [&](Picoseconds now) {
      disturb(local, now);
      ASSERT_LE(local.audit(), 1e-9);
    });
    events.seed(seed);
    const auto b = drive(component, costs.transfers.size(), seed,
                         [&](Picoseconds now) { disturb(component, now); });
    for (std::size_t t = 0; t < a.size(); ++t) {
      // Sums in another order may round a time to the next picosecond.
      ASSERT_NEAR(static_cast<double>(a[t]), static_cast<double>(b[t]), 1) << "seed " << seed;
    }
    EXPECT_LT(local.rates_computed(), component.rates_computed());
  }
}

TEST(FlowNetwork, ALimitedTransferLeavesTheRestToOthers) {
  Costs costs = make_costs({12_GBps}, {{{0, 1e9}}, {{0, 1e9}}, {{0, 1e9}}});
  costs.transfers[0].rate_limit = 2_GBps;
  FlowNetwork network(costs);
  for (std::uint32_t t = 0; t < 3; ++t) {
    network.start(t, 0);
  }
  network.settle(0);
  EXPECT_DOUBLE_EQ(network.rate(0).base(), 2e9);
  EXPECT_DOUBLE_EQ(network.rate(1).base(), 5e9);
  EXPECT_DOUBLE_EQ(network.rate(2).base(), 5e9);
}

TEST(FlowNetwork, ALimitAppliesToTheMostLoadedLink) {
  Costs costs = make_costs({10_GBps, 10_GBps}, {{{0, 8e9}, {1, 4e9}}});
  costs.transfers[0].rate_limit = 4_GBps;
  FlowNetwork network(costs);
  network.start(0, 0);
  network.settle(0);
  EXPECT_EQ(network.next_end(), 2'000'000'000'000U);
}

TEST(FlowNetwork, RejectsImpossibleLimits) {
  Costs costs = make_costs({10_GBps}, {{{0, 1e9}}});
  costs.transfers[0].rate_limit = BytesPerSecond(-1.0);
  EXPECT_THROW(FlowNetwork{costs}, std::logic_error);
  costs.transfers[0].rate_limit = BytesPerSecond(std::numeric_limits<double>::infinity());
  EXPECT_THROW(FlowNetwork{costs}, std::logic_error);
}

TEST(FlowNetwork, TransfersMayComeAndGoWhileOthersAreInFlight) {
  FlowNetwork network(make_costs({1_GBps}, {{{0, 3e6}}}), FlowNetwork::Links::kSeparate);
  network.start(0, 0);
  network.settle(0);
  TransferCost cost;
  cost.loads = {{0, 1e6}};
  const std::uint32_t added = network.add(cost);
  network.start(added, 1'000'000'000);  // 2 MB of the first are left; both then have 0.5 GB/s
  network.settle(1'000'000'000);
  EXPECT_EQ(network.end_next(), added);
  network.remove(added);
  network.settle(3'000'000'000);
  EXPECT_EQ(network.add(cost), added);  // ids are used again
  EXPECT_EQ(network.next_end(), 4'000'000'000U);
  EXPECT_THROW(FlowNetwork(make_costs({1_GBps}, {})).add(cost), std::logic_error);
  EXPECT_THROW(network.remove(0), std::logic_error);
}

TEST(FlowNetwork, APartOfATransferTakesThatPartOfItsTime) {
  FlowNetwork network(make_costs({1_GBps}, {{{0, 4e6}}}));
  network.start(0, 0, 0.25);
  network.settle(0);
  EXPECT_EQ(network.next_end(), 1'000'000'000U);
}

TEST(FlowNetwork, MergedLinksGiveTheSameTimesAsSeparateOnes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const Costs costs = random_costs(random);
    FlowNetwork merged(costs, FlowNetwork::Links::kMerged);
    FlowNetwork separate(costs, FlowNetwork::Links::kSeparate);
    ASSERT_LE(merged.link_count(), separate.link_count());
    const auto nothing = [](Picoseconds) {};
    const auto a = drive(merged, costs.transfers.size(), seed, nothing);
    const auto b = drive(separate, costs.transfers.size(), seed, nothing);
    for (std::size_t t = 0; t < a.size(); ++t) {
      // Sums in another order may round a time to the next picosecond.
      ASSERT_NEAR(static_cast<double>(a[t]), static_cast<double>(b[t]), 2) << "seed " << seed;
    }
  }
}

TEST(FlowNetwork, BytesCarriedEqualBytesLoaded) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const Costs costs = random_costs(random);
    FlowNetwork network(costs);
    std::vector<double> carried(costs.transfers.size(), 0);  // integral of the rates
    std::vector<double> rates(costs.transfers.size(), 0);
    Picoseconds before = 0;
    drive(network, costs.transfers.size(), seed, [&](Picoseconds now) {
      for (std::uint32_t t = 0; t < carried.size(); ++t) {
        carried[t] += rates[t] * to_seconds(now - before).base();
        rates[t] = network.rate(t).base();
      }
      before = now;
    });
    for (std::size_t t = 0; t < carried.size(); ++t) {
      // An end is rounded to a picosecond: half of one at up to 10 GB/s is 0.005 B.
      const double bytes = largest_load(costs.transfers[t]);
      ASSERT_NEAR(carried[t], bytes, bytes * 1e-9 + 0.005) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace orrery::flow_network_test
