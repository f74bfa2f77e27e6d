// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/program_replayer.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

namespace orrery {
namespace {

/// Where the stream stands in the number of a run, above its places.
constexpr int kStreamBit = 26;

}  // namespace

std::vector<Actor> actors_of(const Program& program, bool unfolded) {
  std::vector<Actor> actors;
  for (std::uint32_t role = 0; role < program.roles.size(); ++role) {
    if (!unfolded) {
      actors.push_back({role, -1});
      continue;
    }
    for (const int rank : program.roles[role].ranks) actors.push_back({role, rank});
  }
  return actors;
}

ProgramReplayer::ProgramReplayer(const Program& program, const Costs& costs,
                                 const ReplayOptions& options)
    : Replayer(costs, options, options.links != nullptr ? *options.links : idle_links(costs)),
      program_(program),
      images_(options.images),
      variation_(options.variation),
      actors_(actors_of(program, images_ != nullptr)),
      path_(options.path),
      streams_(static_cast<std::uint32_t>(program.streams.size())),
      accounts_(actors_.size()),
      block_times_(actors_.size()) {
  check_costs();
  freeze_blocks();
  set_meetings();
  if (options.slowdowns != nullptr) {
    sharing_ = std::make_unique<DeviceSharing>(actors_.size(), streams_, *options.slowdowns, queue_,
                                               kComputeEnd);
    looks_ahead_ = timeline_ == nullptr && observer_ == nullptr && path_ == nullptr;
  }
  if (timeline_ != nullptr) {
    memory_ = std::make_unique<MemoryTrack>(program, actors_, *timeline_);
    call_begun_.resize(actors_.size());
  }
  place_cursors();
  if (path_ != nullptr) path_->clear(cursors_.size());
  start_all();
}

void ProgramReplayer::check_costs() const {
  const std::size_t meetings = images_ == nullptr ? program_.transfers.size() : images_->size();
  if (costs_.kernels.size() != program_.kernels.size() || costs_.transfers.size() != meetings) {
    throw std::logic_error("costs belong to another program");
  }
  for (const KernelCost& cost : costs_.kernels)
    if (cost.duration > kMaxTime) throw std::overflow_error("a kernel takes more than 2^63 ps");
  for (const TransferCost& cost : costs_.transfers)
    if (cost.latency > kMaxTime) throw std::overflow_error("a latency of more than 2^63 ps");
  for (const Transfer& transfer : program_.transfers)
    if (transfer.participants < 1) throw std::logic_error("a transfer without participants");
  if (streams_ > 32) throw std::logic_error("more than 32 streams");
}

void ProgramReplayer::set_meetings() {
  meetings_.resize(costs_.transfers.size());
  std::uint32_t posts = 0;
  for (std::uint32_t m = 0; m < meetings_.size(); ++m) {
    meetings_[m].first_post = posts;
    meetings_[m].participants = images_ == nullptr
                                    ? static_cast<std::uint32_t>(program_.transfers[m].participants)
                                    : images_->participants(m);
    posts += meetings_[m].participants;
  }
  posts_.resize(posts);
  if (costs_.link_events.empty()) return;  // else nobody asks
  flights_.resize(meetings_.size());
  std::iota(flights_.begin(), flights_.end(), 0U);
}

void ProgramReplayer::freeze_blocks() {
  blocks_.reserve(program_.blocks.size());
  for (const OperatorGraph& graph : program_.blocks) {
    blocks_.push_back(freeze(graph, streams_));
    for (const FrozenOperator& op : blocks_.back().operators) {
      const bool compute = op.kind == OperatorKind::kCompute;
      if (op.work >= (compute ? program_.kernels.size() : program_.transfers.size()))
        throw std::logic_error("an operator names an unknown kernel or transfer");
    }
  }
}

void ProgramReplayer::place_cursors() {
  for (const Role& role : program_.roles) {
    for (const BlockId block : role.calls)
      if (block >= blocks_.size()) throw std::logic_error("a role calls an unknown block");
  }
  cursors_.resize(actors_.size() * streams_);
  for (std::size_t i = 0; i < cursors_.size(); ++i) {
    Cursor& cursor = cursors_[i];
    cursor.actor = static_cast<std::uint32_t>(i / streams_);
    cursor.stream = static_cast<StreamId>(i % streams_);
    enter_call(cursor, 0);
    left_ += cursor.position != kEnd ? 1 : 0;
  }
}

void ProgramReplayer::start_all() {
  for (std::uint32_t cursor = 0; cursor < cursors_.size(); ++cursor) {
    start(cursor, 0);
  }
  network_.settle(0);
}

void ProgramReplayer::event_due(const Event& event) {
  if (sharing_ && !kernel_ended(event)) return;
  ++events_;
  finish(event.target, event.time);
}

void ProgramReplayer::prefetch(const Event& event) const {
  if (event.kind != kComputeEnd) {
    __builtin_prefetch(&meetings_[event.target]);
    return;
  }
  __builtin_prefetch(&cursors_[event.target]);
  __builtin_prefetch(&accounts_[event.target / streams_]);
  if (sharing_) sharing_->prefetch(event.target);
}

/// Starts the operator at the head of a stream, unless it has to wait for another stream.
void ProgramReplayer::start(std::uint32_t index, Picoseconds now) {
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
  if (memory_) memory_->starts(cursor.actor, block_of(cursor), cursor.head->id, now);
  if (path_ != nullptr) path_->starts(index, now);
  if (cursor.head->kind == OperatorKind::kCompute) {
    cursor.state = State::kComputing;
    start_kernel(index, now);
  } else {
    cursor.state = State::kPosted;
    post(index, now);
  }
}

void ProgramReplayer::start_kernel(std::uint32_t index, Picoseconds now) {
  const Cursor& cursor = cursors_[index];
  if (cursor.stream != 0) catch_up(cursor.actor, now);  // the host hands over to all streams
  Picoseconds& enqueued = accounts_[cursor.actor].enqueued;
  enqueued = issued(cursor, enqueued);
  const Picoseconds begin = std::max(now, enqueued);
  if (!sharing_) {
    queue_.push({begin + duration_of(cursor), index, kComputeEnd, 0});
    return;
  }
  sharing_->begin(index, cursor.head->work, begin, duration_of(cursor));
  sharing_->queue_end(
      index, looks_ahead_ && cursor.stream == 0 ? look_ahead(index) : sharing_->end(index));
}

/// Whether an event ends the kernel at the head of its stream.
bool ProgramReplayer::kernel_ended(const Event& event) {
  if (!sharing_->counts(event)) return false;
  if (event.target % streams_ == 0) {
    run_through(event.target, event.time);
    accounts_[event.target / streams_].ahead = 0;
  }
  return sharing_->ends(event);
}

/// Time of the kernel at the head of a stream, alone on its device.
Picoseconds ProgramReplayer::duration_of(const Cursor& cursor) const {
  const KernelId kernel = cursor.head->work;
  const Picoseconds duration = costs_.kernels[kernel].duration;
  if (variation_ == nullptr) return duration;
  const Actor& actor = actors_[cursor.actor];
  const std::uint64_t run = cursor.position + (std::uint64_t{cursor.stream} << kStreamBit);
  const double factor = variation_->factor(actor.rank, kernel, run);
  return to_picoseconds(to_seconds(duration) * factor);
}

/// A transfer, posted by all, begins or ends to take its share of the devices of its actors.
void ProgramReplayer::load_devices(std::uint32_t id, Picoseconds now, bool begins) {
  if (costs_.transfers[id].device.none()) return;
  const Meeting& meeting = meetings_[id];
  for (std::uint32_t i = 0; i < meeting.participants; ++i) {
    const std::uint32_t actor = cursors_[posts_[meeting.first_post + i]].actor;
    catch_up(actor, now);
    load_device(actor, costs_.transfers[id].device, now, begins);
  }
}

bool ProgramReplayer::blocked(Cursor& cursor, Picoseconds now) {
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

bool ProgramReplayer::end_blocked(Cursor& cursor, Picoseconds now) {
  for (std::uint32_t s = 1; s < streams_; ++s) {
    if (sibling(cursor, s).position != kEnd) {
      await(cursor, static_cast<StreamId>(s), kEnd, now);
      return true;
    }
  }
  return false;
}

void ProgramReplayer::await(Cursor& cursor, StreamId stream, std::uint64_t awaited,
                            Picoseconds now) {
  cursor.state = State::kBlocked;
  cursor.awaits = stream;
  cursor.awaited = awaited;
  sibling(cursor, stream).waiting |= 1U << cursor.stream;
  if (cursor.stream == 0) accounts_[cursor.actor].gap_settled = now;
  if (stream == 0) catch_up(cursor.actor, now);
}

void ProgramReplayer::post(std::uint32_t cursor, Picoseconds now) {
  const std::uint32_t id = meeting_of(cursors_[cursor]);
  Meeting& meeting = meetings_[id];
  if (meeting.in_flight) {
    throw std::logic_error("a transfer is used on two streams of a role; verify() names it");
  }
  posts_[meeting.first_post + meeting.posted] = cursor;
  if (++meeting.posted == meeting.participants) begin_transfer(id, now);
}

/// All have posted.
void ProgramReplayer::begin_transfer(std::uint32_t id, Picoseconds now) {
  Meeting& meeting = meetings_[id];
  for (std::uint32_t i = 0; i < meeting.participants; ++i) {
    Cursor& cursor = cursors_[posts_[meeting.first_post + i]];
    settle_gap(cursor.actor, now);
    cursor.state = State::kInFlight;
    if (path_ != nullptr)
      path_->meets(index_of(cursor), posts_[meeting.first_post + meeting.participants - 1], now);
  }
  meeting.in_flight = true;
  meeting.started = now;
  begin_flight(id, costs_.transfers[id].latency, now);
}

void ProgramReplayer::flight_ended(std::uint32_t id, Picoseconds now) {
  Meeting& meeting = meetings_[id];
  meeting.in_flight = false;
  meeting.posted = 0;
  ++meeting.completed;
  // An actor that is released here may post the same transfer again at once. That overwrites only
  // posts that were released before: there are never more new posts than released ones.
  for (std::uint32_t i = 0; i < meeting.participants; ++i) {
    finish(posts_[meeting.first_post + i], now);
  }
}

void ProgramReplayer::finish(std::uint32_t index, Picoseconds now) {
  Cursor& cursor = cursors_[index];
  ++operators_;
  settle_gap(cursor.actor, now);
  if (cursor.stream == 0) {
    account_operator(cursor, now);
  } else {
    catch_up(cursor.actor, now);
  }
  if (cursor.head->kind == OperatorKind::kCompute && costs_.kernels[cursor.head->work].host_waits) {
    Picoseconds& enqueued = accounts_[cursor.actor].enqueued;
    enqueued = std::max(enqueued, now);
  }
  if (timeline_ != nullptr) {
    record_span(cursor, now);
    memory_->ends(cursor.actor, block_of(cursor), cursor.head->id, now);
  }
  if (observer_ != nullptr) observe(cursor, now);
  if (path_ != nullptr) record_path(cursor, now);
  advance(cursor);
  if (cursor.position == kEnd) {
    --left_;
    accounts_[cursor.actor].end = now;
  }
  start(index, now);
  if (cursor.waiting != 0) wake_waiting(cursor, now);
}

void ProgramReplayer::advance(Cursor& cursor) {
  if (cursor.stream == 0 && cursor.head + 1 == cursor.block_end) end_call(cursor);
  step(cursor);
}

/// Goes to the next operator of the stream.
void ProgramReplayer::step(Cursor& cursor) const {
  cursor.waits_met = 0;
  if (++cursor.head != cursor.block_end) {
    ++cursor.position;
  } else {
    enter_call(cursor, (cursor.position >> 32) + 1);
  }
}

/// Goes to the first operator of the stream in this call or a later one.
void ProgramReplayer::enter_call(Cursor& cursor, std::uint64_t call) const {
  const std::vector<BlockId>& calls = calls_of(cursor);
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

/// Starts what waits for a stream that has come far enough; what waits for more stays noted.
void ProgramReplayer::wake_waiting(Cursor& awaited, Picoseconds now) {
  for (unsigned left = awaited.waiting; left != 0; left &= left - 1) {
    const auto stream = static_cast<std::uint32_t>(std::countr_zero(left));
    const Cursor& cursor = sibling(awaited, stream);
    if (awaited.position < cursor.awaited) continue;
    awaited.waiting &= ~(1U << stream);
    start(index_of(cursor), now);
  }
}

}  // namespace orrery
