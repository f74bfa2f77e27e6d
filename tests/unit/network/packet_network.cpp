// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/network/packet_network.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace orrery {

PacketNetwork::PacketNetwork(const std::vector<PacketLink>& links,
                             const std::vector<PacketFlow>& flows, const PacketOptions& options)
    : options_(options) {
  if (options.mtu == 0) {
    throw std::logic_error("packets without payload");
  }
  for (const PacketLink& link : links) {
    if (!(link.rate.base() > 0) || !std::isfinite(link.rate.base())) {
      throw std::logic_error("a link whose rate is not positive and finite");
    }
    links_.emplace_back();
    links_.back().rate = link.rate.base();
    links_.back().latency = link.latency;
  }
  for (const PacketFlow& flow : flows) {
    add_flow(flow);
  }
  // Events in the order of time: the queue lets none in before one that was taken out.
  for (std::uint32_t f = 0; f < flows.size(); ++f) {
    queue_.push({flows[f].start, flows_[f].first_hop, kArrived, 0});
  }
}

void PacketNetwork::add_flow(const PacketFlow& given) {
  if (given.route.empty() || given.bytes == 0) {
    throw std::logic_error("a flow without a route or without bytes");
  }
  Flow flow;
  flow.packets = (given.bytes + options_.mtu - 1) / options_.mtu;
  flow.last_bytes = given.bytes - (flow.packets - 1) * options_.mtu + options_.header;
  flow.first_hop = static_cast<std::uint32_t>(hops_.size());
  for (std::size_t i = 0; i < given.route.size(); ++i) {
    const std::uint32_t link = given.route[i];
    const auto before = given.route.begin() + static_cast<std::ptrdiff_t>(i);
    if (link >= links_.size() || std::find(given.route.begin(), before, link) != before) {
      throw std::logic_error("a route over an unknown link, or twice over one");
    }
    Hop hop;
    hop.flow = static_cast<std::uint32_t>(flows_.size());
    hop.link = link;
    hop.credits = credits(links_[link]);
    hop.first = i == 0;
    hop.last = i + 1 == given.route.size();
    links_[link].hops.push_back(static_cast<std::uint32_t>(hops_.size()));
    hops_.push_back(hop);
  }
  flows_.push_back(flow);
}

/// A packet takes up room from when it is sent until it has left the next switch and its credit is
/// back: two latencies and two times on the wire, and one packet more for those that wait there.
std::uint32_t PacketNetwork::credits(const Link& link) const {
  if (options_.buffer > 0) {
    return options_.buffer;
  }
  const Picoseconds wire = std::max<Picoseconds>(1, time_on(link, options_.mtu + options_.header));
  return static_cast<std::uint32_t>(2 * link.latency / wire) + 4;
}

Picoseconds PacketNetwork::time_on(const Link& link, std::uint64_t bytes) {
  return to_picoseconds(Seconds(static_cast<double>(bytes) / link.rate));
}

std::uint64_t PacketNetwork::wire_bytes(const Hop& hop) const {
  const Flow& flow = flows_[hop.flow];
  return hop.sent + 1 == flow.packets ? flow.last_bytes : options_.mtu + options_.header;
}

std::vector<Picoseconds> PacketNetwork::run() {
  while (next_time() != kNever) {
    execute(next_time());
  }
  std::vector<Picoseconds> ends;
  for (const Flow& flow : flows_) {
    ends.push_back(flow.end);
  }
  return ends;
}

void PacketNetwork::execute(Picoseconds now) {
  do {
    while (queue_.top_time() <= now) {
      ++events_;
      handle(queue_.pop(), now);
    }
    std::sort(woken_.begin(), woken_.end());
    for (const std::uint32_t link : woken_) {
      links_[link].woken = false;
      choose(link, now);
    }
    woken_.clear();
  } while (queue_.top_time() <= now);
}

void PacketNetwork::handle(const Event& event, Picoseconds now) {
  switch (static_cast<EventKind>(event.kind)) {
    case kArrived: {
      Hop& hop = hops_[event.target];
      // A sender has all of its packets at once.
      hop.arrived = hop.first ? flows_[hop.flow].packets : hop.arrived + 1;
      wake(hop.link);
      break;
    }
    case kLinkFree: {
      const std::uint32_t sender = links_[event.target].sending;
      links_[event.target].sending = kNobody;
      if (!hops_[sender].first) {
        // The packet has left its input port: the port before learns of it.
        const Link& before = links_[hops_[sender - 1].link];
        queue_.push({now + before.latency, sender - 1, kCredit, 0});
      }
      wake(event.target);
      break;
    }
    case kCredit:
      ++hops_[event.target].credits;
      wake(hops_[event.target].link);
      break;
    case kDelivered:
      flows_[event.target].end = now;
      break;
  }
}

void PacketNetwork::wake(std::uint32_t link) {
  if (!links_[link].woken && links_[link].sending == kNobody) {
    links_[link].woken = true;
    woken_.push_back(link);
  }
}

/// Sends a packet of the first flow in turn that has one, and room for it at the other end.
void PacketNetwork::choose(std::uint32_t index, Picoseconds now) {
  Link& link = links_[index];
  for (std::size_t asked = 0; asked < link.hops.size(); ++asked) {
    const std::size_t turn = (link.turn + asked) % link.hops.size();
    const Hop& hop = hops_[link.hops[turn]];
    if (hop.sent < hop.arrived && (hop.last || hop.credits > 0)) {
      link.turn = turn + 1;
      send(link.hops[turn], now);
      return;
    }
  }
}

void PacketNetwork::send(std::uint32_t sender, Picoseconds now) {
  Hop& hop = hops_[sender];
  Link& link = links_[hop.link];
  const std::uint64_t bytes = wire_bytes(hop);
  const Picoseconds wire = time_on(link, bytes);
  link.sending = sender;
  ++hop.sent;
  queue_.push({now + wire, hop.link, kLinkFree, 0});
  if (hop.last) {
    if (hop.sent == flows_[hop.flow].packets) {
      queue_.push({now + wire + link.latency, hop.flow, kDelivered, 0});
    }
    return;
  }
  --hop.credits;
  const Picoseconds header = time_on(link, options_.header);
  const Picoseconds next_wire = time_on(links_[hops_[sender + 1].link], bytes);
  // A faster link waits until the packet can follow without a gap.
  const Picoseconds wait = wire > next_wire ? wire - next_wire : 0;
  queue_.push({now + link.latency + std::max(header, wait), sender + 1, kArrived, 0});
}

}  // namespace orrery
