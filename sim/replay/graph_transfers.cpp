// SPDX-License-Identifier: Apache-2.0
// Transfers of a graph: what they cost, when all who take part are there, and links that change.
#include <algorithm>
#include <functional>
#include <utility>

#include "sim/replay/graph_replayer.h"

namespace orrery {

bool GraphReplayer::takes_recorded(const GraphMeeting& meeting) const {
  if (!costs_.transfer) return true;
  if (meeting.recorded == 0) return false;
  const bool sized =
      meeting.message.bytes.base() > 0 || meeting.message.kind == TransferKind::kBarrier;
  return costs_.recorded_transfers || !sized;
}

std::uint32_t GraphReplayer::price_of(const GraphMeeting& meeting) {
  const ImportedMessage& message = meeting.message;
  const bool pair = message.kind == TransferKind::kSendReceive;
  const PriceKey key{message.kind, message.bytes.base(),
                     pair ? static_cast<std::uint32_t>(meeting.source) : message.group,
                     static_cast<std::uint32_t>(pair ? meeting.destination : message.root), state_};
  const auto [known, is_new] =
      price_numbers_.try_emplace(key, static_cast<std::uint32_t>(prices_.size()));
  if (!is_new) return known->second;
  Price& price = prices_.emplace_back();
  std::vector<int> ranks = pair ? std::vector<int>{meeting.source, meeting.destination}
                                : meetings_.members(message.group);
  const bool sized = message.bytes.base() > 0 || message.kind == TransferKind::kBarrier;
  if (!sized || ranks.size() < 2 || (pair && ranks[0] == ranks[1])) return known->second;
  if (!pair && message.root > 0 && static_cast<std::size_t>(message.root) < ranks.size())
    std::rotate(ranks.begin(), ranks.begin() + message.root, ranks.end());
  Transfer transfer;
  transfer.name = to_string(message.kind);
  transfer.kind = message.kind;
  transfer.bytes = message.bytes;
  transfer.participants = static_cast<int>(ranks.size());
  transfer.groups = {std::move(ranks)};
  price.cost = cost_of(transfer);
  return known->second;
}

TransferCost GraphReplayer::cost_of(const Transfer& transfer) const {
  return state_ > 0 ? costs_.states[state_ - 1].transfer(transfer) : costs_.transfer(transfer);
}

/// The next state of the links begins: what is left of transfers in flight goes the way that they
/// then have.
void GraphReplayer::change_links(Picoseconds now) {
  struct Moving {
    std::uint32_t meeting;
    double left;
  };
  std::vector<Moving> moving;
  for (std::uint32_t number = 0; number < meetings_.size(); ++number) {
    const GraphMeeting& meeting = meetings_.at(number);
    if (!meeting.open || !meeting.in_network) continue;
    moving.push_back({number, 1 - network_.part_done(meeting.flow, now)});
    prices_[meeting.price].carried -= moving.back().left;
  }
  count_busy();
  const GraphCosts::LinkState& next = costs_.states[state_++];
  for (std::uint32_t link = 0; link < next.links.size(); ++link)
    if (network_.capacity(link).base() != next.links[link].base())
      network_.set_capacity(link, next.links[link]);
  for (const Moving& one : moving) {
    GraphMeeting& meeting = meetings_.at(one.meeting);
    const std::uint32_t price = price_of(meeting);
    const TransferCost& cost = prices_[price].cost;
    if (!cost.loads.empty()) {
      meeting.price = price;
      network_.reroute({meeting.flow, cost.loads, cost.image}, now);
    }
    prices_[meeting.price].carried += one.left;
  }
  network_changed_ = true;
}

/// What links have carried since the last change took them this long.
void GraphReplayer::count_busy() {
  link_busy_s_.resize(costs_.links.size());
  for (Price& price : prices_) {
    const double more = price.carried - std::exchange(price.counted, price.carried);
    for (const LinkLoad& load : price.cost.loads) {
      const double capacity = network_.capacity(load.link).base();
      if (more > 0 && capacity > 0) link_busy_s_[load.link] += load.bytes * more / capacity;
    }
  }
}

/// The last has come.
void GraphReplayer::begin_meeting(std::uint32_t number, Picoseconds now) {
  GraphMeeting& meeting = meetings_.at(number);
  meeting.started = now;
  for (const int r : meeting.ranks) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    settle(rank, now);
    --rank.running[static_cast<std::size_t>(Part::kWaiting)];
    ++rank.running[static_cast<std::size_t>(Part::kInFlight)];
  }
  meeting.from_file = takes_recorded(meeting);
  if (meeting.from_file) {
    const Picoseconds time = scaled_time(meeting.recorded, costs_.transfer_scale);
    queue_.push({checked_add(now, time), number, kTransferEnd, 0});
    return;
  }
  meeting.price = price_of(meeting);
  const Picoseconds latency =
      scaled_time(prices_[meeting.price].cost.latency, costs_.transfer_scale);
  queue_.push({checked_add(now, latency), number, kLatencyEnd, 0});
}

void GraphReplayer::begin_bytes(std::uint32_t number, Picoseconds now) {
  GraphMeeting& meeting = meetings_.at(number);
  if (!costs_.states.empty()) meeting.price = price_of(meeting);  // links may have changed
  Price& price = prices_[meeting.price];
  if (price.cost.loads.empty() || costs_.transfer_scale == 0) return end_meeting(number, now);
  if (price.flows.empty()) {
    meeting.flow = network_.add(price.cost);
    meeting_of_flow_.resize(std::max<std::size_t>(meeting_of_flow_.size(), meeting.flow + 1));
  } else {
    meeting.flow = price.flows.back();
    price.flows.pop_back();
  }
  if (!network_.carries_bytes(meeting.flow)) {
    price.flows.push_back(meeting.flow);
    return end_meeting(number, now);
  }
  price.carried += costs_.transfer_scale;
  meeting_of_flow_[meeting.flow] = number;
  meeting.in_network = true;
  network_.start(meeting.flow, now, costs_.transfer_scale);
  network_changed_ = true;
}

void GraphReplayer::end_meeting(std::uint32_t number, Picoseconds now) {
  GraphMeeting& meeting = meetings_.at(number);
  if (meeting.in_network) {
    prices_[meeting.price].flows.push_back(meeting.flow);
    network_changed_ = true;
  }
  const Picoseconds time = now - meeting.started;
  chain_.met(meeting.ranks, meeting.nodes, time);
  for (std::size_t i = 0; i < meeting.ranks.size(); ++i) {
    TransferTime& of = transfers_[static_cast<std::size_t>(meeting.ranks[i])]
                                 [static_cast<std::size_t>(meeting.message.kind)];
    ++of.count;
    of.time += time;
    of.recorded += meeting.from_file ? time : 0;
    of.bytes += meeting.message.bytes.base();
    finish(meeting.slots[i], now);
  }
  meetings_.release(number);
}

}  // namespace orrery
