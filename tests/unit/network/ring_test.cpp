// SPDX-License-Identifier: Apache-2.0
// A ring all-reduce step by step: every rank sends a share to the next as soon as it has sent and
// received the one before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/network/flow_network.h"
#include "tests/unit/network/packet_network.h"

namespace orrery::ring_test {
namespace {

struct Ring {
  std::uint32_t ranks;
  double bytes;         ///< bytes to reduce
  double capacity;      ///< bytes/s of a link
  Picoseconds latency;  ///< time of a step
  bool through_switch;  ///< a step takes a link into the switch and one out of it; else one link
};

/// The links of the message from `rank` to the next.
std::vector<std::uint32_t> route(const Ring& ring, std::uint32_t rank) {
  if (ring.through_switch) {
    return {rank, ring.ranks + (rank + 1) % ring.ranks};
  }
  return {rank};
}

/// When the last message of each step has ended.
std::vector<Picoseconds> step_ends(const Ring& ring) {
  Costs costs;
  costs.links.assign(ring.ranks * 2, BytesPerSecond(ring.capacity));
  for (std::uint32_t rank = 0; rank < ring.ranks; ++rank) {
    TransferCost cost;
    for (const std::uint32_t link : route(ring, rank)) {
      cost.loads.push_back({link, ring.bytes / ring.ranks});
    }
    costs.transfers.push_back(cost);
  }
  FlowNetwork network(costs);
  EventQueue starts;  // latencies that end
  std::vector<Picoseconds> ends(2 * (ring.ranks - 1), 0);
  std::vector<std::uint32_t> sent(ring.ranks, 0), received(ring.ranks, 0), begun(ring.ranks, 0);
  const auto begin_if_ready = [&](std::uint32_t rank, Picoseconds now) {
    if (begun[rank] == sent[rank] && begun[rank] == received[rank] && begun[rank] < ends.size()) {
      ++begun[rank];
      starts.push({now + ring.latency, rank, 0, 0});
    }
  };
  for (std::uint32_t rank = 0; rank < ring.ranks; ++rank) {
    begin_if_ready(rank, 0);
  }
  while (!starts.empty() || network.in_flight() > 0) {
    const Picoseconds now = std::min(starts.top_time(), network.next_end());
    while (network.next_end() == now) {
      const std::uint32_t rank = network.end_next();
      const std::uint32_t next = (rank + 1) % ring.ranks;
      ends[sent[rank]] = std::max(ends[sent[rank]], now);
      ++sent[rank];
      ++received[next];
      begin_if_ready(rank, now);
      begin_if_ready(next, now);
    }
    while (starts.top_time() == now) {
      network.start(starts.pop().target, now);
    }
    network.settle(now);
  }
  return ends;
}

TEST(Ring, AllReduceOnIdealLinksIsTheClosedFormToAPicosecondPerStep) {
  for (const std::uint32_t ranks : {2U, 3U, 8U, 72U, 256U}) {
    for (const double bytes : {1e3, 1e6 + 7, 1e9}) {
      for (const bool through_switch : {false, true}) {
        const Ring ring{ranks, bytes, 48.3e9, 1'234'567, through_switch};
        const std::vector<Picoseconds> ends = step_ends(ring);
        // Thakur et al. 2005: 2(n - 1) (alpha + S / (n B)), in picoseconds.
        const double step = 1'234'567 + bytes / ranks / 48.3e9 * 1e12;
        for (std::size_t s = 0; s < ends.size(); ++s) {
          const double steps = static_cast<double>(s) + 1;
          ASSERT_NEAR(static_cast<double>(ends[s]), steps * step, steps) << ranks << " ranks";
        }
      }
    }
  }
}

TEST(Ring, OfFluidsThroughASwitchTakesNoMoreThanOnDirectLinks) {
  for (const std::uint32_t ranks : {8U, 72U}) {
    Ring ring{ranks, 1e9, 50e9, 500'000, false};
    const Picoseconds direct = step_ends(ring).back();
    ring.through_switch = true;
    EXPECT_LE(static_cast<double>(step_ends(ring).back()), 1.05 * static_cast<double>(direct));
  }
}

/// A step of the ring in packets; when the last byte arrived.
Picoseconds packet_step(const Ring& ring) {
  std::vector<PacketFlow> flows;
  for (std::uint32_t rank = 0; rank < ring.ranks; ++rank) {
    flows.push_back({route(ring, rank), static_cast<std::uint64_t>(ring.bytes / ring.ranks), 0});
  }
  const PacketLink link{BytesPerSecond(ring.capacity), ring.latency};
  PacketNetwork network(std::vector<PacketLink>(ring.ranks * 2, link), flows);
  const std::vector<Picoseconds> ends = network.run();
  return *std::max_element(ends.begin(), ends.end());
}

TEST(Ring, OfPacketsThroughASwitchTakesAtMost5PercentMoreThanOnDirectLinks) {
  // 1 MiB to each neighbour, 250 ns per link.
  Ring ring{8, 8 << 20, 50e9, 250'000, false};
  const Picoseconds direct = packet_step(ring);
  ring.through_switch = true;
  const Picoseconds switched = packet_step(ring);
  EXPECT_GT(switched, direct);
  EXPECT_LE(static_cast<double>(switched), 1.05 * static_cast<double>(direct));
}

}  // namespace
}  // namespace orrery::ring_test
