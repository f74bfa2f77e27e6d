// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "sim/network/flow_network.h"
#include "tests/unit/network/packet_network.h"

namespace orrery {

/// A small network with messages, for both models.
struct PacketCase {
  std::vector<PacketLink> links;
  std::vector<PacketFlow> flows;
  PacketOptions options;
};

/// A dumbbell, star, tree of two tiers or ring of 4 to 16 hosts with 2 to 12 messages; rates from
/// 10 to 50 GB/s, 50 to 150 ns per hop through a switch and 10 to 50 ns between the neighbours of a
/// ring, packets of 512 B with headers of 32 B.
inline PacketCase random_packet_case(std::uint64_t seed, std::uint64_t least, std::uint64_t most) {
  std::mt19937_64 random(seed);
  const auto between = [&random](std::uint64_t low, std::uint64_t high) {
    return low + random() % (high - low + 1);
  };
  PacketCase c;
  c.options.mtu = 512;
  c.options.header = 32;
  const auto hosts = static_cast<std::uint32_t>(between(4, 16));
  const std::uint64_t shape = random() % 4;
  const bool ring = shape == 3;
  const auto link = [&c, &between, ring] {
    const double rate = 1e9 * static_cast<double>(between(10, 50));
    c.links.push_back({BytesPerSecond(rate), 1000 * (ring ? between(10, 50) : between(50, 150))});
    return static_cast<std::uint32_t>(c.links.size() - 1);
  };
  const std::uint32_t leaves = shape == 0 ? 2 : shape == 1 ? 1 : 4;
  std::vector<std::uint32_t> up, down, leaf_up, leaf_down;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    up.push_back(link());
    down.push_back(ring ? up.back() : link());
  }
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    leaf_up.push_back(link());
    leaf_down.push_back(link());
  }
  const std::uint64_t flows = between(2, 12);
  for (std::uint64_t f = 0; f < flows; ++f) {
    const auto from = static_cast<std::uint32_t>(random() % hosts);
    const auto to = static_cast<std::uint32_t>((from + between(1, hosts - 1)) % hosts);
    PacketFlow flow;
    if (ring) {
      for (std::uint32_t at = from; at != to; at = (at + 1) % hosts) {
        flow.route.push_back(up[at]);
      }
    } else if (from % leaves == to % leaves) {
      flow.route = {up[from], down[to]};
    } else {
      flow.route = {up[from], leaf_up[from % leaves], leaf_down[to % leaves], down[to]};
    }
    flow.bytes = between(least, most);
    flow.start = random() % 2 == 0 ? 0 : between(0, 100'000'000);
    c.flows.push_back(flow);
  }
  return c;
}

/// Ends by the fluid model: the latencies of a route, then wire bytes, headers included.
inline std::vector<Picoseconds> fluid_ends(const PacketCase& c) {
  Costs costs;
  for (const PacketLink& link : c.links) {
    costs.links.push_back(link.rate);
  }
  EventQueue starts;
  for (std::uint32_t f = 0; f < c.flows.size(); ++f) {
    const PacketFlow& flow = c.flows[f];
    const std::uint64_t count = (flow.bytes + c.options.mtu - 1) / c.options.mtu;
    const auto wire = static_cast<double>(flow.bytes + count * c.options.header);
    TransferCost cost;
    Picoseconds start = flow.start;
    for (const std::uint32_t link : flow.route) {
      cost.loads.push_back({link, wire});
      start += c.links[link].latency;
    }
    costs.transfers.push_back(cost);
    starts.push({start, f, 0, 0});
  }
  FlowNetwork network(costs);
  std::vector<Picoseconds> ends(c.flows.size());
  while (!starts.empty() || network.in_flight() > 0) {
    const Picoseconds now = std::min(starts.top_time(), network.next_end());
    while (network.next_end() == now) {
      ends[network.end_next()] = now;
    }
    while (starts.top_time() == now) {
      network.start(starts.pop().target, now);
    }
    network.settle(now);
  }
  return ends;
}

}  // namespace orrery
