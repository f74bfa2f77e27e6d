// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/graph/frozen_block.h"
#include "sim/graph/images.h"
#include "sim/graph/program.h"
#include "sim/graph/tensors.h"
#include "sim/replay/critical_path.h"
#include "sim/replay/huge_pages.h"
#include "sim/replay/replayer.h"
#include "sim/units/time.h"

namespace orrery {

/// Who plays in a replay: a role for all its ranks, or one of them.
struct Actor {
  std::uint32_t role = 0;
  int rank = -1;  ///< -1: all ranks of the role
};

/// The roles in order, or each rank of each.
std::vector<Actor> actors_of(const Program& program, bool unfolded);

/// Writes the memory of each role, or rank, over time into a timeline, as counters in bytes: what
/// it holds all the time (Role::held), and the tensors that its operators make and free, by
/// TensorRole. Nothing of programs that name no tensors.
class MemoryTrack {
 public:
  /// @param program, timeline outlive it
  MemoryTrack(const Program& program, const std::vector<Actor>& actors, Timeline& timeline);

  /// An operator starts, and what it makes is there.
  void starts(std::uint32_t actor, BlockId block, OperatorId op, Picoseconds now);
  /// It has ended, and what it frees is gone.
  void ends(std::uint32_t actor, BlockId block, OperatorId op, Picoseconds now);

 private:
  void apply(std::uint32_t actor, BlockId block, OperatorId op, bool ends, Picoseconds now);
  void write(std::uint32_t actor, TensorRole tensors, Picoseconds now);

  const Program& program_;
  Timeline& timeline_;
  std::vector<std::vector<std::uint32_t>> first_event_;  ///< first events by block and operator
  std::vector<std::array<Bytes, kTensorRoles>> alive_;   ///< bytes by actor and TensorRole
  std::vector<Bytes> held_;                              ///< bytes by actor
};

/// The replay of a program: operators start in the order of their streams.
///
/// Programs are templates, so an actor (a role, or one of its ranks) keeps only where each of its
/// in-order streams stands. A transfer, or an image of one, is a flight.
class ProgramReplayer final : public Replayer {
 public:
  /// @throws std::logic_error for a program that verify() rejects in a way that would break the
  /// replay, std::overflow_error for a duration beyond kMaxTime.
  ProgramReplayer(const Program& program, const Costs& costs, const ReplayOptions& options = {});

  /// What every stuck role waits for, and the cycle of waits if there is one. For a replay that
  /// stopped unfinished.
  std::string deadlock_report() const;
  /// The result of a finished replay.
  ReplayResult result() const;

 private:
  friend class DeadlockReport;

  /// kBlocked: waits for another stream of its actor; kPosted: for the others of its transfer.
  enum class State : std::uint8_t { kBlocked, kComputing, kPosted, kInFlight, kDone };

  /// Call index and offset of an operator in its stream: ordered as the stream executes them.
  static constexpr std::uint64_t position(std::uint64_t call, std::uint64_t offset) {
    return call << 32 | offset;
  }
  static constexpr std::uint64_t kEnd = ~std::uint64_t{0};

  /// An in-order stream of an actor: one line of a cache.
  struct alignas(64) Cursor {
    const FrozenOperator* head = nullptr;       ///< the operator that runs or starts next
    const FrozenOperator* block_end = nullptr;  ///< end of this stream in the current block
    const StreamWait* waits = nullptr;          ///< waits of the current block
    std::uint64_t position = 0;                 ///< position of `head`; kEnd after the last
    std::uint64_t awaited = 0;  ///< kBlocked: the position that stream `awaits` has to reach
    Picoseconds begun = 0;      ///< when the operator started or was posted
    std::uint32_t actor = 0;
    std::uint32_t waiting = 0;  ///< streams of the actor that wait for this one, a bit each
    StreamId stream = 0;
    StreamId awaits = 0;
    std::uint8_t waits_met = 0;
    State state = State::kBlocked;
  };
  static_assert(sizeof(Cursor) == 64);

  /// Where the time of the compute stream of an actor goes.
  struct alignas(128) Account {
    Picoseconds enqueued = 0;     ///< when the host has handed over the last kernel that started
    Picoseconds gap_settled = 0;  ///< until when the gap that the stream is in is booked
    Picoseconds in_call = 0;      ///< time of the call that it is in, for block_times_
    TimeBreakdown breakdown;
    Picoseconds end = 0;
    std::uint32_t ahead = 0;  ///< kernels that follow the one at the head before the queued end
  };

  /// A transfer, or an image of one, and its posts; it serves one rendezvous after the other.
  struct Meeting {
    std::uint32_t first_post = 0;  ///< index in posts_ of the first one
    std::uint32_t participants = 0;
    std::uint32_t posted = 0;
    bool in_flight = false;
    Picoseconds started = 0;
    std::uint64_t completed = 0;
  };

  const Cursor& sibling(const Cursor& cursor, std::uint32_t stream) const {
    return cursors_[cursor.actor * streams_ + stream];
  }
  Cursor& sibling(const Cursor& cursor, std::uint32_t stream) {
    return cursors_[cursor.actor * streams_ + stream];
  }

  std::uint32_t index_of(const Cursor& cursor) const {
    return static_cast<std::uint32_t>(&cursor - cursors_.data());
  }

  BlockId block_of(const Cursor& cursor) const { return calls_of(cursor)[cursor.position >> 32]; }
  const std::vector<BlockId>& calls_of(const Cursor& cursor) const {
    return program_.roles[actors_[cursor.actor].role].calls;
  }
  /// The meeting of the transfer at the head of a stream.
  std::uint32_t meeting_of(const Cursor& cursor) const {
    const std::uint32_t transfer = cursor.head->work;
    return images_ == nullptr ? transfer : images_->of(transfer, actors_[cursor.actor].rank);
  }
  TransferId transfer_of(std::uint32_t meeting) const {
    return images_ == nullptr ? meeting : images_->transfer(meeting);
  }
  Picoseconds duration_of(const Cursor& cursor) const;

  void event_due(const Event& event) override;
  void prefetch(const Event& event) const override;
  void flight_ended(std::uint32_t meeting, Picoseconds now) override;
  void load_devices(std::uint32_t meeting, Picoseconds now, bool begins) override;
  std::span<const std::uint32_t> flights_of(std::uint32_t meeting) const override {
    return {&flights_[meeting], 1};
  }
  double ended(std::uint32_t meeting) const override {
    return static_cast<double>(meetings_[meeting].completed);
  }
  std::string name_of(std::uint32_t meeting) const override {
    return "transfer '" + program_.transfers[transfer_of(meeting)].name + "'";
  }

  void check_costs() const;
  void freeze_blocks();
  void place_cursors();
  void set_meetings();

  void start_all();
  void start(std::uint32_t cursor, Picoseconds now);
  void start_kernel(std::uint32_t cursor, Picoseconds now);
  bool kernel_ended(const Event& event);
  bool blocked(Cursor& cursor, Picoseconds now);
  bool end_blocked(Cursor& cursor, Picoseconds now);
  void await(Cursor& cursor, StreamId stream, std::uint64_t position, Picoseconds now);
  void post(std::uint32_t cursor, Picoseconds now);
  void begin_transfer(std::uint32_t meeting, Picoseconds now);
  void finish(std::uint32_t cursor, Picoseconds now);
  void advance(Cursor& cursor);
  void step(Cursor& cursor) const;
  void enter_call(Cursor& cursor, std::uint64_t call) const;
  void wake_waiting(Cursor& awaited, Picoseconds now);

  // kernel_runs.cpp
  Picoseconds look_ahead(std::uint32_t cursor);
  bool follows(const Cursor& ahead, const Cursor& cursor) const;
  void run_through(std::uint32_t cursor, Picoseconds now);
  void follow(std::uint32_t cursor);
  void catch_up(std::uint32_t actor, Picoseconds now);
  Picoseconds issued(const Cursor& cursor, Picoseconds enqueued) const;

  void account_operator(const Cursor& cursor, Picoseconds now);
  void settle_gap(std::uint32_t actor, Picoseconds now);
  const Cursor& cause_of(const Cursor& blocked) const;
  void end_call(const Cursor& compute);
  void record_span(const Cursor& cursor, Picoseconds now);
  void record_call(const Cursor& cursor, Picoseconds now);
  void record_transfer(const Cursor& cursor, Picoseconds now) const;
  void observe(const Cursor& cursor, Picoseconds now) const;
  void record_path(const Cursor& cursor, Picoseconds now);

  const Program& program_;
  std::vector<Picoseconds> call_begun_;  ///< begin of the call of each actor; with a timeline
  std::unique_ptr<MemoryTrack> memory_;  ///< null: without timeline
  const Images* images_;                 ///< null: actors are roles
  const KernelVariation* variation_;     ///< null: all runs of a kernel are alike
  std::vector<Actor> actors_;
  CriticalPath* path_;     ///< null: nobody asks
  std::uint32_t streams_;  ///< streams per actor
  std::vector<FrozenBlock> blocks_;
  std::vector<Cursor, HugePages<Cursor>> cursors_;     ///< cursors by actor, then stream
  std::vector<Account, HugePages<Account>> accounts_;  ///< accounts by actor
  /// Time of the compute stream by block, as far as it has been in one; by actor.
  std::vector<std::vector<Picoseconds>> block_times_;
  std::vector<Meeting, HugePages<Meeting>> meetings_;  ///< meetings by transfer, or image
  std::vector<std::uint32_t> posts_;                   ///< cursors that wait, grouped by meeting
  std::vector<std::uint32_t> flights_;                 ///< the meetings; with link events
  bool looks_ahead_ = false;  ///< kernels that follow one another share an event
};

}  // namespace orrery
