// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/graph_replayer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/trace/timeline.h"

namespace orrery {
namespace {

/// Links alone: transfers come as they are met.
Costs links_of(const GraphCosts& graph_costs) {
  Costs costs;
  costs.links = graph_costs.links;
  return costs;
}

}  // namespace

GraphReplayer::GraphReplayer(const ImportedRun& run, const GraphCosts& costs,
                             const GraphReplayOptions& options)
    : run_(run),
      costs_(costs),
      timeline_(options.timeline),
      begins_(options.begins),
      ranks_(run.graph_of_rank.size()),
      waits_(ranks_.size()),
      transfers_(ranks_.size()),
      meetings_(run),
      network_(links_of(costs), FlowNetwork::Links::kSeparate) {
  place_ranks();
  start_due(0);
  network_.settle(0);
}

void GraphReplayer::place_ranks() {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    rank.graph = run_.graph_of_rank[r];
    rank.first_stream = static_cast<std::uint32_t>(streams_.size());
    if (rank.graph == ImportedRun::kAbsent) continue;
    for (const ImportedStream& stream : graph(rank).streams) {
      streams_.emplace_back();
      streams_.back().serial = stream.serial;
    }
  }
  slots_.resize(streams_.size());
  if (begins_ != nullptr) begins_->assign(ranks_.size(), {});
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].graph == ImportedRun::kAbsent) continue;
    const ImportedGraph& nodes = graph(ranks_[r]);
    waits_[r].resize(nodes.size());
    chain_.place(r, nodes.size());
    if (begins_ != nullptr) (*begins_)[r].resize(nodes.size());
    nodes_left_ += nodes.size();
    for (NodeId node = 0; node < nodes.size(); ++node) {
      waits_[r][node] = nodes.nodes[node].waits;
      if (waits_[r][node] == 0) make_ready(r, node);
    }
  }
}

Picoseconds GraphReplayer::next_time() const {
  if (finished()) return kNever;
  return std::min({queue_.top_time(), network_.next_end(), next_state_time()});
}

void GraphReplayer::execute(Picoseconds now) {
  do {
    while (next_state_time() <= now) change_links(now);
    while (network_.next_end() <= now) {
      ++events_;
      end_meeting(meeting_of_flow_[network_.end_next()], now);
    }
    while (queue_.top_time() <= now) {
      ++events_;
      const Event event = queue_.pop();
      if (event.kind == kNodeEnd) {
        finish(event.target, now);
      } else if (event.kind == kLatencyEnd) {
        begin_bytes(event.target, now);
      } else {
        end_meeting(event.target, now);
      }
    }
    start_due(now);
    // Once for all that starts and ends at this time.
    if (network_changed_) network_.settle(now);
    network_changed_ = false;
  } while (next_time() <= now);
}

std::uint32_t GraphReplayer::take_slot(std::uint32_t rank, NodeId node) {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  slots_[slot].rank = rank;
  slots_[slot].node = node;
  return slot;
}

void GraphReplayer::make_ready(std::uint32_t rank, NodeId node) {
  const std::uint32_t number = ranks_[rank].first_stream + graph(ranks_[rank]).nodes[node].stream;
  Stream& stream = streams_[number];
  if (!stream.serial) {
    due_.push_back(take_slot(rank, node));
    return;
  }
  stream.ready.push_back(node);
  if (stream.ready.size() > 1)
    std::push_heap(stream.ready.begin(), stream.ready.end(), std::greater<>());
  if (stream.busy || stream.due) return;
  stream.due = true;
  slots_[number].rank = rank;
  due_.push_back(number);
}

/// Starts what has become possible, once all that ends at this time has ended.
void GraphReplayer::start_due(Picoseconds now) {
  starting_.swap(due_);
  for (const std::uint32_t slot : starting_) {
    if (slot < streams_.size()) {
      Stream& stream = streams_[slot];
      stream.due = false;
      stream.busy = true;
      slots_[slot].node = stream.ready.front();
      if (stream.ended == now && stream.last != kNoNode)
        chain_.follows(slots_[slot].rank, slots_[slot].node, stream.last);
      if (stream.ready.size() > 1)
        std::pop_heap(stream.ready.begin(), stream.ready.end(), std::greater<>());
      stream.ready.pop_back();
    }
    start(slot, now);
  }
  starting_.clear();
}

Picoseconds GraphReplayer::duration(const Rank& rank, const ImportedNode& node) const {
  const auto& works = costs_.works;
  const Picoseconds time = rank.graph < works.size() && !works[rank.graph].empty()
                               ? works[rank.graph][node.work]
                               : graph(rank).works[node.work].recorded;
  if (!costs_.slowdown || node.kind != NodeKind::kKernel ||
      graph(rank).works[node.work].communicates)
    return time;
  const auto id = static_cast<NodeId>(&node - graph(rank).nodes.data());
  return scaled_time(time, costs_.slowdown(static_cast<int>(index_of(rank)), id));
}

GraphReplayer::Part GraphReplayer::part_of(const Rank& rank, const ImportedNode& node) const {
  if (node.kind == NodeKind::kHost || node.kind == NodeKind::kMarker) return Part::kHost;
  const NodeWork& work = graph(rank).works[node.work];
  if (work.communicates) return Part::kInFlight;
  return work.classified && work.kind == KernelClass::kOptimizer ? Part::kOptimizer
                                                                 : Part::kCompute;
}

/// Books the time since the last change to what goes on, the most useful first.
void GraphReplayer::settle(Rank& rank, Picoseconds now) {
  const Picoseconds time = now - rank.settled;
  if (time == 0) return;
  rank.settled = now;
  TimeBreakdown& breakdown = rank.breakdown;
  Picoseconds* const parts[] = {&breakdown.compute, &breakdown.optimizer,
                                &breakdown.exposed_communication, &breakdown.bubble,
                                &breakdown.host};
  for (std::size_t part = 0; part < std::size(parts); ++part) {
    if (rank.running[part] == 0) continue;
    *parts[part] += time;
    return;
  }
  breakdown.idle += time;
}

void GraphReplayer::start(std::uint32_t index, Picoseconds now) {
  Slot& slot = slots_[index];
  slot.begun = now;
  if (begins_ != nullptr) (*begins_)[slot.rank][slot.node] = now;
  if (timeline_ != nullptr && index >= streams_.size()) slot.lane = take_lane(slot.rank);
  Rank& rank = ranks_[slot.rank];
  const ImportedNode& node = graph(rank).nodes[slot.node];
  settle(rank, now);
  if (node.kind <= NodeKind::kKernel) {
    const Picoseconds time = duration(rank, node);
    streams_[rank.first_stream + node.stream].work += time;
    ++rank.running[static_cast<std::size_t>(part_of(rank, node))];
    queue_.push({checked_add(now, time), index, kNodeEnd, 0});
    return;
  }
  ++rank.running[static_cast<std::size_t>(Part::kWaiting)];
  const std::uint32_t meeting = meetings_.arrive(static_cast<int>(slot.rank), slot.node, index);
  if (meetings_.at(meeting).complete()) begin_meeting(meeting, now);
}

void GraphReplayer::finish(std::uint32_t index, Picoseconds now) {
  const Slot slot = slots_[index];
  Rank& rank = ranks_[slot.rank];
  const ImportedGraph& of = graph(rank);
  const ImportedNode& node = of.nodes[slot.node];
  settle(rank, now);
  const Part part = node.kind <= NodeKind::kKernel ? part_of(rank, node) : Part::kInFlight;
  --rank.running[static_cast<std::size_t>(part)];
  rank.end = now;
  rank.last = slot.node;
  ++nodes_;
  --nodes_left_;
  if (timeline_ != nullptr) record_span(slot, index < streams_.size(), now);
  if (index < streams_.size()) {
    Stream& stream = streams_[index];
    stream.busy = false;
    stream.last = slot.node;
    stream.ended = now;
    stream.due = !stream.ready.empty();
    if (stream.due) due_.push_back(index);
  } else {
    free_slots_.push_back(index);
  }
  std::vector<std::uint32_t>& waits = waits_[slot.rank];
  const std::uint32_t end = (&node + 1)->first_next;
  for (std::uint32_t e = node.first_next; e < end; ++e)
    if (--waits[of.next[e]] == 0) {
      chain_.follows(slot.rank, of.next[e], slot.node);
      make_ready(slot.rank, of.next[e]);
    }
}

std::string GraphReplayer::stall_report() const {
  const auto stall = network_.stall();
  if (!stall) return {};
  const GraphMeeting& meeting = meetings_.at(meeting_of_flow_[stall->transfer]);
  return std::string(to_string(meeting.message.kind)) + " of rank " +
         std::to_string(meeting.ranks.front()) + " stands still: link " +
         (costs_.link_name ? costs_.link_name(stall->link) : std::to_string(stall->link)) +
         " is down, and the transfer has no other way";
}

/// A track of its own for a node that runs beside others of its stream: the first that is free.
std::uint32_t GraphReplayer::take_lane(std::uint32_t rank) {
  lanes_.resize(ranks_.size());
  std::vector<bool>& lanes = lanes_[rank];
  const auto lane =
      static_cast<std::size_t>(std::find(lanes.begin(), lanes.end(), false) - lanes.begin());
  if (lane == lanes.size()) {
    lanes.push_back(false);
    const std::size_t thread = graph(ranks_[rank]).streams.size() + lane;
    timeline_->thread(rank, static_cast<std::uint32_t>(thread),
                      "side by side " + std::to_string(lane + 1));
  }
  lanes[lane] = true;
  return static_cast<std::uint32_t>(lane);
}

void GraphReplayer::record_span(const Slot& slot, bool serial, Picoseconds now) {
  const ImportedGraph& of = graph(ranks_[slot.rank]);
  const ImportedNode& node = of.nodes[slot.node];
  if (!serial) lanes_[slot.rank][slot.lane] = false;
  if (now == slot.begun) return;
  const std::size_t thread = serial ? node.stream : of.streams.size() + slot.lane;
  timeline_->span(slot.rank, static_cast<std::uint32_t>(thread), of.name(slot.node),
                  to_string(node.kind), slot.begun, now);
}

void GraphReplayer::walk_chain(int last, const GraphChain::Visit& visit) const {
  const Rank& rank = ranks_.at(static_cast<std::size_t>(last));
  if (rank.last == kNoNode) return;
  chain_.walk(
      static_cast<std::uint32_t>(last), rank.last,
      [this](std::uint32_t r, NodeId node) {
        return duration(ranks_[r], graph(ranks_[r]).nodes[node]);
      },
      visit);
}

GraphReplayResult GraphReplayer::result() const {
  GraphReplayResult result;
  result.nodes = nodes_;
  result.events = events_;
  for (const Rank& rank : ranks_) {
    result.rank_end.push_back(rank.end);
    if (rank.end <= result.end) continue;
    result.end = rank.end;
    result.last_rank = static_cast<int>(index_of(rank));
  }
  if (!ranks_.empty()) {
    const Rank& last = ranks_[static_cast<std::size_t>(result.last_rank)];
    result.breakdown = last.breakdown;
    result.transfers = transfers_[static_cast<std::size_t>(result.last_rank)];
    if (last.graph != ImportedRun::kAbsent) {
      for (std::size_t s = 0; s < graph(last).streams.size(); ++s)
        result.stream_busy.push_back(streams_[last.first_stream + s].work);
    }
  }
  result.link_bytes.resize(costs_.links.size());
  result.link_payload.resize(costs_.links.size());
  result.link_busy_s = link_busy_s_;
  result.link_busy_s.resize(costs_.links.size());
  for (const Price& price : prices_) {
    if (price.carried == 0) continue;
    for (const LinkLoad& load : price.cost.loads) {
      result.link_bytes[load.link] += load.bytes * price.carried;
      result.link_payload[load.link] += load.payload * price.carried;
      const double capacity = network_.capacity(load.link).base();
      if (capacity > 0)
        result.link_busy_s[load.link] += load.bytes * (price.carried - price.counted) / capacity;
    }
  }
  return result;
}

}  // namespace orrery
