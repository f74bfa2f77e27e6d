// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/graph_replayer.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <memory>

#include "sim/trace/timeline.h"

namespace orrery {
namespace {

/// Kernels of a rank that run at once and can be slowed; further ones take their time alone.
constexpr std::uint32_t kLanes = 32;

}  // namespace

GraphReplayer::GraphReplayer(const ImportedRun& run, const GraphCosts& nodes, const Costs& costs,
                             const GraphReplayOptions& options)
    : Replayer(costs, options, FlowNetwork(costs, FlowNetwork::Links::kSeparate)),
      run_(run),
      nodes_(nodes),
      variation_(options.variation),
      begins_(options.begins),
      ranks_(run.graph_of_rank.size()),
      waits_(ranks_.size()),
      transfers_(ranks_.size()),
      meetings_(run),
      flights_of_(costs.transfers.size()),
      grounded_(costs.transfers.size()),
      ended_(costs.transfers.size()) {
  for (std::uint32_t transfer = 0; transfer < flights_of_.size(); ++transfer) {
    flights_.push_back({transfer, 0});
    flights_of_[transfer] = grounded_[transfer] = {transfer};
  }
  if (options.slowdowns != nullptr) {
    sharing_ = std::make_unique<DeviceSharing>(ranks_.size(), kLanes, *options.slowdowns, queue_,
                                               kComputeEnd);
    slot_of_lane_.resize(ranks_.size() * kLanes);
  }
  place_ranks();
  start_ready(0);
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
    left_ += nodes.size();
    for (NodeId node = 0; node < nodes.size(); ++node) {
      waits_[r][node] = nodes.nodes[node].waits;
      if (waits_[r][node] == 0) make_ready(r, node);
    }
  }
}

void GraphReplayer::event_due(const Event& event) {
  if (event.kind == kComputeEnd) {
    if (!sharing_->counts(event) || !sharing_->ends(event)) return;
    const std::uint32_t slot = slot_of_lane_[event.target];
    end_sharing(slot, event.target, event.time);
    ++events_;
    finish(slot, event.time);
    return;
  }
  ++events_;
  if (event.kind == kNodeEnd) {
    finish(event.target, event.time);
  } else {
    end_meeting(event.target, event.time);
  }
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

void GraphReplayer::start_ready(Picoseconds now) {
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
  const auto& works = nodes_.works;
  const Picoseconds time = rank.graph < works.size() && !works[rank.graph].empty()
                               ? works[rank.graph][node.work]
                               : graph(rank).works[node.work].recorded;
  if (variation_ == nullptr || node.kind != NodeKind::kKernel ||
      graph(rank).works[node.work].communicates)
    return time;
  const auto id = static_cast<NodeId>(&node - graph(rank).nodes.data());
  return scaled_time(time, variation_->factor(static_cast<int>(index_of(rank)), 0, id));
}

KernelId GraphReplayer::kernel_of(const Rank& rank, const ImportedNode& node) const {
  const auto& kernels = nodes_.kernels;
  const bool known =
      node.kind == NodeKind::kKernel && rank.graph < kernels.size() && !kernels[rank.graph].empty();
  return known ? kernels[rank.graph][node.work] : NodeWork::kNoKernel;
}

GraphReplayer::Part GraphReplayer::part_of(const Rank& rank, const ImportedNode& node) const {
  if (node.kind == NodeKind::kHost || node.kind == NodeKind::kMarker) return Part::kHost;
  const NodeWork& work = graph(rank).works[node.work];
  if (work.communicates) return Part::kInFlight;
  return work.classified && work.kind == KernelClass::kOptimizer ? Part::kOptimizer
                                                                 : Part::kCompute;
}

Picoseconds& GraphReplayer::time_of(TimeBreakdown& breakdown, Part part) {
  Picoseconds* const parts[] = {&breakdown.compute, &breakdown.optimizer,
                                &breakdown.exposed_communication, &breakdown.bubble,
                                &breakdown.host};
  return *parts[static_cast<std::size_t>(part)];
}

/// Books the time since the last change to what goes on, the most useful first.
void GraphReplayer::settle(Rank& rank, Picoseconds now) {
  const Picoseconds time = now - rank.settled;
  if (time == 0) return;
  rank.settled = now;
  for (std::size_t part = 0; part < std::size(rank.running); ++part) {
    if (rank.running[part] == 0) continue;
    time_of(rank.breakdown, static_cast<Part>(part)) += time;
    return;
  }
  rank.breakdown.idle += time;
}

void GraphReplayer::start(std::uint32_t index, Picoseconds now) {
  Slot& slot = slots_[index];
  slot.begun = now;
  if (begins_ != nullptr) (*begins_)[slot.rank][slot.node] = now;
  if (timeline_ != nullptr && index >= streams_.size()) slot.track = take_track(slot.rank);
  Rank& rank = ranks_[slot.rank];
  settle(rank, now);
  if (graph(rank).nodes[slot.node].kind <= NodeKind::kKernel) return start_work(index, now);
  ++rank.running[static_cast<std::size_t>(Part::kWaiting)];
  const std::uint32_t meeting = meetings_.arrive(static_cast<int>(slot.rank), slot.node, index);
  if (meetings_.at(meeting).complete()) begin_meeting(meeting, now);
}

void GraphReplayer::start_work(std::uint32_t index, Picoseconds now) {
  Rank& rank = ranks_[slots_[index].rank];
  const ImportedNode& node = graph(rank).nodes[slots_[index].node];
  const Picoseconds time = duration(rank, node);
  const Picoseconds end = checked_add(now, time);
  streams_[rank.first_stream + node.stream].work += time;
  ++rank.running[static_cast<std::size_t>(part_of(rank, node))];
  if (sharing_ && share_device(index, kernel_of(rank, node), time, now)) return;
  queue_.push({end, index, kNodeEnd, 0});
}

/// A kernel that transfers slow takes a lane of its device. @return whether it is one
bool GraphReplayer::share_device(std::uint32_t slot, KernelId kernel, Picoseconds time,
                                 Picoseconds now) {
  std::uint32_t& taken = ranks_[slots_[slot].rank].lanes;
  if (kernel == NodeWork::kNoKernel || costs_.kernels[kernel].fixed || taken == ~0U) return false;
  const auto free = static_cast<std::uint32_t>(std::countr_one(taken));
  taken |= 1U << free;
  const std::uint32_t lane = slots_[slot].rank * kLanes + free;
  slot_of_lane_[lane] = slot;
  sharing_->begin(lane, kernel, now, time);
  sharing_->queue_end(lane, sharing_->end(lane));
  return true;
}

/// Kernels that run side by side are slowed for the same time together, which counts once.
void GraphReplayer::end_sharing(std::uint32_t index, std::uint32_t lane, Picoseconds now) {
  const Slot& slot = slots_[index];
  Rank& rank = ranks_[slot.rank];
  rank.lanes &= ~(1U << lane % kLanes);
  const Picoseconds longer = sharing_->longer(lane);
  if (longer == 0) return;
  longer_[{slot.rank, slot.node}] = longer;
  settle(rank, now);
  Picoseconds& time = time_of(rank.breakdown, part_of(rank, graph(rank).nodes[slot.node]));
  const Picoseconds more = std::min({longer, time, now - std::max(slot.begun, rank.contended)});
  time -= more;
  rank.breakdown.contention += more;
  rank.contended = now;
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
  ++operators_;
  --left_;
  if (timeline_ != nullptr) record_span(slot, index < streams_.size(), now);
  if (observer_ != nullptr) observe(slot, now);
  free_stream(index, now);
  std::vector<std::uint32_t>& waits = waits_[slot.rank];
  const std::uint32_t end = (&node + 1)->first_next;
  for (std::uint32_t e = node.first_next; e < end; ++e)
    if (--waits[of.next[e]] == 0) {
      chain_.follows(slot.rank, of.next[e], slot.node);
      make_ready(slot.rank, of.next[e]);
    }
}

/// The stream or place of a node that has ended is there for the next.
void GraphReplayer::free_stream(std::uint32_t index, Picoseconds now) {
  if (index >= streams_.size()) return free_slots_.push_back(index);
  Stream& stream = streams_[index];
  stream.busy = false;
  stream.last = slots_[index].node;
  stream.ended = now;
  stream.due = !stream.ready.empty();
  if (stream.due) due_.push_back(index);
}

void GraphReplayer::observe(const Slot& slot, Picoseconds now) const {
  const Rank& rank = ranks_[slot.rank];
  const KernelId kernel = kernel_of(rank, graph(rank).nodes[slot.node]);
  if (kernel != NodeWork::kNoKernel) observer_->kernel_ran(slot.rank, kernel, slot.begun, now);
}

/// A track of its own for a node that runs beside others of its stream: the first that is free.
std::uint32_t GraphReplayer::take_track(std::uint32_t rank) {
  tracks_.resize(ranks_.size());
  std::vector<bool>& tracks = tracks_[rank];
  const auto track =
      static_cast<std::size_t>(std::find(tracks.begin(), tracks.end(), false) - tracks.begin());
  if (track == tracks.size()) {
    tracks.push_back(false);
    const std::size_t thread = graph(ranks_[rank]).streams.size() + track;
    timeline_->thread(rank, static_cast<std::uint32_t>(thread),
                      "side by side " + std::to_string(track + 1));
  }
  tracks[track] = true;
  return static_cast<std::uint32_t>(track);
}

void GraphReplayer::record_span(const Slot& slot, bool serial, Picoseconds now) {
  const ImportedGraph& of = graph(ranks_[slot.rank]);
  const ImportedNode& node = of.nodes[slot.node];
  if (!serial) tracks_[slot.rank][slot.track] = false;
  if (now == slot.begun) return;
  const std::size_t thread = serial ? node.stream : of.streams.size() + slot.track;
  timeline_->span(slot.rank, static_cast<std::uint32_t>(thread), of.name(slot.node),
                  to_string(node.kind), slot.begun, now);
}

void GraphReplayer::walk_chain(const GraphChain::Visit& visit) const {
  const auto last = static_cast<std::uint32_t>(result().last_role);
  if (last >= ranks_.size() || ranks_[last].last == kNoNode) return;
  chain_.walk(
      last, ranks_[last].last,
      [this](std::uint32_t r, NodeId node) {
        const auto slowed = longer_.find({r, node});
        return duration(ranks_[r], graph(ranks_[r]).nodes[node]) +
               (slowed == longer_.end() ? 0 : slowed->second);
      },
      visit);
}

GraphReplayResult GraphReplayer::result() const {
  GraphReplayResult result;
  result.operators = operators_;
  result.events = events_;
  for (const Rank& rank : ranks_) {
    result.roles.push_back({rank.end, rank.breakdown, {}});
    if (rank.end <= result.end) continue;
    result.end = rank.end;
    result.last_role = static_cast<int>(index_of(rank));
  }
  for (RoleResult& role : result.roles) role.breakdown.idle += result.end - role.end;
  if (!ranks_.empty()) {
    const Rank& last = ranks_[static_cast<std::size_t>(result.last_role)];
    result.transfers = transfers_[static_cast<std::size_t>(result.last_role)];
    if (last.graph != ImportedRun::kAbsent) {
      for (std::size_t s = 0; s < graph(last).streams.size(); ++s)
        result.stream_busy.push_back(streams_[last.first_stream + s].work);
    }
  }
  add_links(result);
  return result;
}

}  // namespace orrery
