// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replayer.h"

#include <algorithm>
#include <stdexcept>

namespace orrery {
namespace {

/// Merged links are equal only as long as nothing is rerouted.
FlowNetwork::Links links_for(const Costs& costs) {
  return costs.link_events.empty() ? FlowNetwork::Links::kMerged : FlowNetwork::Links::kSeparate;
}

}  // namespace

Replayer::Replayer(const Program& program, const Costs& costs, const ReplayOptions& options)
    : program_(program),
      costs_(costs),
      timeline_(options.timeline),
      observer_(options.observer),
      streams_(static_cast<std::uint32_t>(program.streams.size())),
      accounts_(program.roles.size()),
      network_(costs, links_for(costs)),
      link_schedule_(costs) {
  check_costs();
  freeze_blocks();
  meetings_.resize(program.transfers.size());
  std::uint32_t posts = 0;
  for (std::size_t t = 0; t < meetings_.size(); ++t) {
    meetings_[t].first_post = posts;
    meetings_[t].participants = static_cast<std::uint32_t>(program.transfers[t].participants);
    posts += meetings_[t].participants;
  }
  posts_.resize(posts);
  if (options.slowdowns != nullptr) {
    sharing_ =
        std::make_unique<DeviceSharing>(program, costs, *options.slowdowns, queue_, kComputeEnd);
  }
  if (timeline_ != nullptr) memory_ = std::make_unique<MemoryTrack>(program, *timeline_);
  place_cursors();
  start_all();
}

void Replayer::check_costs() const {
  if (costs_.kernels.size() != program_.kernels.size() ||
      costs_.transfers.size() != program_.transfers.size()) {
    throw std::logic_error("costs belong to another program");
  }
  const auto too_long = [](Picoseconds duration) { return duration > kMaxTime; };
  for (const KernelCost& cost : costs_.kernels) {
    if (too_long(cost.duration)) {
      throw std::overflow_error("a kernel takes more than 2^63 ps");
    }
  }
  for (std::size_t t = 0; t < costs_.transfers.size(); ++t) {
    if (too_long(costs_.transfers[t].latency)) {
      throw std::overflow_error("a latency of more than 2^63 ps");
    }
    if (program_.transfers[t].participants < 1) {
      throw std::logic_error("a transfer without participants");
    }
  }
}

void Replayer::freeze_blocks() {
  blocks_.reserve(program_.blocks.size());
  for (const OperatorGraph& graph : program_.blocks) {
    blocks_.push_back(freeze(graph, streams_));
    for (const FrozenOperator& op : blocks_.back().operators) {
      check_operator(op);
    }
  }
}

void Replayer::check_operator(const FrozenOperator& op) const {
  const bool compute = op.kind == OperatorKind::kCompute;
  if (op.work >= (compute ? program_.kernels.size() : program_.transfers.size())) {
    throw std::logic_error("an operator names an unknown kernel or transfer");
  }
}

void Replayer::place_cursors() {
  cursors_.resize(program_.roles.size() * streams_);
  for (std::size_t i = 0; i < cursors_.size(); ++i) {
    Cursor& cursor = cursors_[i];
    cursor.role = static_cast<std::uint32_t>(i / streams_);
    cursor.stream = static_cast<StreamId>(i % streams_);
    for (const BlockId block : program_.roles[cursor.role].calls) {
      if (block >= blocks_.size()) {
        throw std::logic_error("a role calls an unknown block");
      }
    }
    enter_call(cursor, 0);
    streams_left_ += cursor.position != kEnd ? 1 : 0;
  }
}

void Replayer::start_all() {
  for (std::uint32_t cursor = 0; cursor < cursors_.size(); ++cursor) {
    start(cursor, 0);
  }
  network_.settle(0);
}

Picoseconds Replayer::next_time() const {
  if (finished()) {
    return kNever;  // whatever happens to the links later
  }
  return std::min({queue_.top_time(), network_.next_end(), link_schedule_.next_time()});
}

void Replayer::execute(Picoseconds now) {
  do {
    while (network_.next_end() <= now) {
      ++events_;
      end_transfer(network_.end_next(), now);
    }
    link_schedule_.apply(now, network_, [this](std::uint32_t t) { return meetings_[t].completed; });
    while (queue_.top_time() <= now) {
      ++events_;
      const Event event = queue_.pop();
      if (event.kind == kComputeEnd) {
        if (!sharing_ || sharing_->ends(event)) finish(event.target, now);
      } else {
        begin_bytes(event.target, now);
      }
    }
    // Once for all that starts and ends at this time.
    network_.settle(now);
  } while (next_time() <= now);
}

/// Starts the operator at the head of a stream, unless it has to wait for another stream.
void Replayer::start(std::uint32_t index, Picoseconds now) {
  Cursor& cursor = cursors_[index];
  if (cursor.position == kEnd) {
    // The compute stream accounts for the role until its last stream ends.
    cursor.state = cursor.stream == 0 && end_blocked(cursor, now) ? State::kBlocked : State::kDone;
    return;
  }
  if (blocked(cursor, now)) {
    return;
  }
  cursor.begun = now;
  if (memory_) memory_->starts(cursor.role, block_of(cursor), cursor.head->id, now);
  if (cursor.head->kind == OperatorKind::kCompute) {
    cursor.state = State::kComputing;
    const KernelId kernel = cursor.head->work;
    Picoseconds& enqueued = accounts_[cursor.role].enqueued;
    enqueued = checked_add(enqueued, std::max(costs_.enqueue, costs_.kernels[kernel].issue));
    const Picoseconds begin = std::max(now, enqueued);
    if (sharing_) {
      sharing_->begin(index, kernel, begin);
    } else {
      queue_.push({begin + costs_.kernels[kernel].duration, index, kComputeEnd, 0});
    }
  } else {
    cursor.state = State::kPosted;
    post(index, now);
  }
}

/// A transfer, posted by all, begins or ends to take its share of the devices of its roles.
void Replayer::load_devices(std::uint32_t transfer, Picoseconds now, bool begins) {
  if (costs_.transfers[transfer].device.none()) return;
  const Meeting& meeting = meetings_[transfer];
  for (std::uint32_t i = 0; i < meeting.participants; ++i) {
    const std::uint32_t role = cursors_[posts_[meeting.first_post + i]].role;
    sharing_->load(role, costs_.transfers[transfer].device, begins, now);
    if (timeline_ != nullptr) record_load(role, now);
  }
}

bool Replayer::blocked(Cursor& cursor, Picoseconds now) {
  for (; cursor.waits_met < cursor.head->waits; ++cursor.waits_met) {
    const StreamWait& wait = cursor.waits[cursor.head->first_wait + cursor.waits_met];
    const std::uint64_t awaited = position(cursor.position >> 32, wait.count);
    if (sibling(cursor, wait.stream).position < awaited) {
      await(cursor, wait.stream, awaited, now);
      return true;
    }
  }
  return false;
}

bool Replayer::end_blocked(Cursor& cursor, Picoseconds now) {
  for (std::uint32_t s = 1; s < streams_; ++s) {
    if (sibling(cursor, s).position != kEnd) {
      await(cursor, static_cast<StreamId>(s), kEnd, now);
      return true;
    }
  }
  return false;
}

void Replayer::await(Cursor& cursor, StreamId stream, std::uint64_t awaited, Picoseconds now) {
  cursor.state = State::kBlocked;
  cursor.awaits = stream;
  cursor.awaited = awaited;
  if (cursor.stream == 0) accounts_[cursor.role].gap_settled = now;
}

void Replayer::post(std::uint32_t cursor, Picoseconds now) {
  const std::uint32_t transfer = cursors_[cursor].head->work;
  Meeting& meeting = meetings_[transfer];
  if (meeting.in_flight) {
    throw std::logic_error("a transfer is used on two streams of a role; verify() names it");
  }
  posts_[meeting.first_post + meeting.posted] = cursor;
  if (++meeting.posted == meeting.participants) begin_transfer(transfer, now);
}

/// All have posted.
void Replayer::begin_transfer(std::uint32_t transfer, Picoseconds now) {
  Meeting& meeting = meetings_[transfer];
  for (std::uint32_t i = 0; i < meeting.participants; ++i) {
    Cursor& cursor = cursors_[posts_[meeting.first_post + i]];
    settle_gap(cursor.role, now);
    cursor.state = State::kInFlight;
  }
  meeting.in_flight = true;
  meeting.started = now;
  if (sharing_) load_devices(transfer, now, true);
  const Picoseconds latency = costs_.transfers[transfer].latency;
  // Without latency too: then all that starts at this time enters the network together.
  queue_.push({now + latency, transfer, kLatencyEnd, 0});
}

void Replayer::begin_bytes(std::uint32_t transfer, Picoseconds now) {
  if (network_.carries_bytes(transfer)) {
    network_.start(transfer, now);
  } else {
    end_transfer(transfer, now);
  }
}

void Replayer::end_transfer(std::uint32_t transfer, Picoseconds now) {
  Meeting& meeting = meetings_[transfer];
  if (sharing_) load_devices(transfer, now, false);
  meeting.in_flight = false;
  meeting.posted = 0;
  ++meeting.completed;
  // A role that is released here may post the same transfer again at once. That overwrites only
  // posts that were released before: there are never more new posts than released ones.
  for (std::uint32_t i = 0; i < meeting.participants; ++i) {
    finish(posts_[meeting.first_post + i], now);
  }
}

void Replayer::finish(std::uint32_t index, Picoseconds now) {
  Cursor& cursor = cursors_[index];
  ++operators_;
  settle_gap(cursor.role, now);
  if (cursor.stream == 0) {
    account_operator(cursor, now);
  }
  if (cursor.head->kind == OperatorKind::kCompute && costs_.kernels[cursor.head->work].host_waits) {
    Picoseconds& enqueued = accounts_[cursor.role].enqueued;
    enqueued = std::max(enqueued, now);
  }
  if (timeline_ != nullptr) {
    record_span(cursor, now);
    memory_->ends(cursor.role, block_of(cursor), cursor.head->id, now);
  }
  if (observer_ != nullptr) observe(cursor, now);
  advance(cursor);
  if (cursor.position == kEnd) {
    --streams_left_;
    accounts_[cursor.role].end = now;
  }
  start(index, now);
  wake_waiting(cursor.role, cursor.stream, now);
}

void Replayer::advance(Cursor& cursor) {
  cursor.waits_met = 0;
  if (++cursor.head != cursor.block_end) {
    ++cursor.position;
    return;
  }
  enter_call(cursor, (cursor.position >> 32) + 1);
}

/// Goes to the first operator of the stream in this call or a later one.
void Replayer::enter_call(Cursor& cursor, std::uint64_t call) {
  const std::vector<BlockId>& calls = program_.roles[cursor.role].calls;
  for (; call < calls.size(); ++call) {
    const FrozenBlock& block = blocks_[calls[call]];
    if (block.size(cursor.stream) > 0) {
      cursor.head = block.operators.data() + block.stream_begin[cursor.stream];
      cursor.block_end = block.operators.data() + block.stream_begin[cursor.stream + 1U];
      cursor.waits = block.waits.data();
      cursor.position = position(call, 0);
      return;
    }
  }
  cursor.head = cursor.block_end = nullptr;
  cursor.position = kEnd;
}

void Replayer::wake_waiting(std::uint32_t role, StreamId stream, Picoseconds now) {
  const std::uint32_t first = role * streams_;
  const Cursor& awaited = cursors_[first + stream];
  for (std::uint32_t index = first; index < first + streams_; ++index) {
    const Cursor& cursor = cursors_[index];
    if (cursor.state == State::kBlocked && cursor.awaits == stream &&
        awaited.position >= cursor.awaited) {
      start(index, now);
    }
  }
}

}  // namespace orrery
