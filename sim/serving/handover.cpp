// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/handover.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

/// Two links for each rank of each instance: what it sends by, and what it receives by.
Costs links_of(const std::vector<Instance>& instances, const std::vector<KvPort>& ports) {
  Costs costs;
  for (std::size_t i = 0; i < instances.size(); ++i)
    costs.links.insert(costs.links.end(), 2 * instances[i].ranks(), ports[i].bandwidth);
  return costs;
}

}  // namespace

Bytes KvSize::of(std::int64_t tokens) const {
  const auto count = static_cast<double>(tokens);
  if (window_tokens == 0) return token * count;
  return token * count + window * std::min(1.0, count / static_cast<double>(window_tokens));
}

Handover::Handover(std::vector<Instance>& instances, Router& router,
                   const std::vector<KvPort>& ports)
    : instances_(instances),
      router_(router),
      ports_(ports),
      fabric_(links_of(instances, ports), FlowNetwork::Links::kSeparate),
      waiting_(instances.size()) {
  std::uint32_t links = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    if (instances[i].role() != InstanceRole::kPrefill) takers_.push_back(i);
    first_links_.push_back(links);
    links += static_cast<std::uint32_t>(2 * instances[i].ranks());
  }
}

std::uint32_t Handover::link_of(std::size_t instance, Instance::Slot slot) const {
  return first_links_[instance] +
         static_cast<std::uint32_t>(2 * instances_[instance].rank_of(slot));
}

void Handover::leave(Instance::Leaving left, std::size_t from, Picoseconds now) {
  views_.clear();
  for (const std::size_t taker : takers_) {
    views_.push_back(instances_[taker].view());
    views_.back().instance = taker;
  }
  const std::size_t to = takers_[router_.choose(left.state.request, views_)];
  router_.sent(left.state.request, to);
  router_.prefilled(left.state.request);
  std::uint32_t slot = static_cast<std::uint32_t>(moves_.size());
  if (spare_.empty()) {
    moves_.emplace_back();
  } else {
    slot = spare_.back();
    spare_.pop_back();
  }
  instances_[to].expect(left.state.request);
  RequestState state = left.state;
  state.blocks = state.states = state.windows = state.shared = state.cached = 0;
  moves_[slot] = {std::move(left), from, to, std::move(state), 0, 0, now};
  waiting_[to].push_back(slot);
  look_for_room(to, now);
}

void Handover::look_for_room(std::size_t instance, Picoseconds now) {
  std::deque<std::uint32_t>& waiting = waiting_[instance];
  while (!waiting.empty() && begin(waiting.front(), now)) waiting.pop_front();
}

bool Handover::begin(std::uint32_t slot, Picoseconds now) {
  Move& move = moves_[slot];
  const auto slot_there = instances_[move.to].make_room(move.state);
  if (!slot_there) return false;
  move.slot = *slot_there;
  const KvSize& size = ports_[move.to].size;
  const Bytes bytes = size.of(move.state.request.prompt) - size.of(move.state.cached);
  moved_ = moved_ + bytes;
  if (bytes.base() <= 0) {
    weightless_.push_back(slot);
    return true;
  }
  TransferCost cost;
  for (const std::uint32_t link :
       {link_of(move.from, move.left.slot), link_of(move.to, *slot_there) + 1})
    cost.loads.push_back({link, bytes.base(), bytes.base()});
  move.transfer = fabric_.add(cost);
  if (slot_of_.size() <= move.transfer) slot_of_.resize(move.transfer + 1);
  slot_of_[move.transfer] = slot;
  fabric_.start(move.transfer, now);
  return true;
}

Picoseconds Handover::settle(Picoseconds now) {
  fabric_.settle(now);
  return weightless_.empty() ? fabric_.next_end() : now;
}

std::vector<Handover::Crossed> Handover::crossed(Picoseconds now) {
  std::vector<Crossed> all;
  const auto add = [&](std::uint32_t slot) {
    const Move& move = moves_[slot];
    const Seconds latency = std::max(ports_[move.from].latency, ports_[move.to].latency);
    all.push_back({slot, checked_add(now, to_picoseconds(latency))});
  };
  for (const std::uint32_t slot : std::exchange(weightless_, {})) add(slot);
  while (fabric_.next_end() == now) {
    const std::uint32_t transfer = fabric_.end_next();
    fabric_.remove(transfer);
    add(slot_of_[transfer]);
  }
  return all;
}

Handover::Moved Handover::arrive(std::uint32_t slot, Picoseconds now) {
  Move& move = moves_[slot];
  times_.add(now - move.since, 1);
  const Moved moved{move.state.request.id, move.from, move.to, move.since};
  instances_[move.from].let_go(move.left);
  instances_[move.to].receive(std::move(move.state), move.slot, now);
  spare_.push_back(slot);
  return moved;
}

}  // namespace orrery
