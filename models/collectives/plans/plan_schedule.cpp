// SPDX-License-Identifier: Apache-2.0
// A plan's operations in one of the orders that its thread blocks may take.
//
// Only where all orders give the same is that one enough: whatever writes a chunk has to be ordered
// with all else that touches it, by the order of a thread block, by a signal and the wait for it,
// by a barrier, a semaphore or the flags of packets. Vector clocks prove it (Flanagan and Freund,
// "FastTrack", PLDI 2009).
#include <algorithm>
#include <map>
#include <stdexcept>

#include "models/collectives/plans/execution_plan.h"

namespace orrery {
namespace {

/// Turns of an operation (PlanMove::turn), each a step of the schedule.
constexpr int kTurns = 3;

/// How far each thread block is known to be.
struct PlanClock {
  std::vector<int> at;  ///< operations by thread block
  int level = 0;        ///< the longest chain of operations so far
  int point = -1;       ///< point of the run (PlanSchedule::Point)
  int sent = -1;        ///< point where what was written to other ranks has arrived
};

/// An access of a thread block to a cell.
struct PlanAccess {
  std::size_t block = 0;
  int time = 0;
};

class PlanRun {
 public:
  PlanRun(const ExecutionPlan& plan, config::Diagnostics& diagnostics)
      : plan_(plan),
        diagnostics_(diagnostics),
        cells_(static_cast<std::size_t>(plan.ranks) * static_cast<std::size_t>(plan.cells())),
        clocks_(plan.blocks.size(), start_of(plan)),
        next_(plan.blocks.size(), 0),
        signals_(static_cast<std::size_t>(plan.signals)) {
    for (const int count : plan.semaphores) semaphores_.push_back({count, start_of(plan)});
    place_chunks();
  }

  PlanSchedule result() {
    bool all_done = false;
    while (!all_done) {
      bool moved = false;
      all_done = true;
      for (std::size_t block = 0; block < plan_.blocks.size(); ++block) {
        while (can_run(block)) {
          run(block);
          moved = true;
        }
        all_done = all_done && done(block);
      }
      if (!moved && !all_done) fail_stuck();
    }
    for (const auto& [ends, chunks] : flows_)
      result_.flows.push_back({ends.first, ends.second, chunks});
    return std::move(result_);
  }

 private:
  struct Cell {
    bool filled = false;   ///< holds something
    bool packets = false;  ///< written as packets, with their flags
    PlanAccess written{};  ///< the last write; its time is 0 where there was none
    std::vector<PlanAccess> read;
    PlanClock clock{};  ///< clock of the writer of packets
  };
  struct Semaphore {
    int count = 0;
    PlanClock clock;
  };

  static PlanClock start_of(const ExecutionPlan& plan) {
    PlanClock clock;
    clock.at.resize(plan.blocks.size());
    return clock;
  }

  /// The point where both are reached.
  int both(int one, int other) {
    if (one == other || other < 0) return one;
    if (one < 0) return other;
    return add_point({one, other, -1, -1});
  }
  int add_point(const PlanSchedule::Point& point) {
    result_.points.push_back(point);
    return static_cast<int>(result_.points.size() - 1);
  }

  void join(const PlanClock& other, PlanClock& clock) {
    for (std::size_t i = 0; i < clock.at.size(); ++i)
      clock.at[i] = std::max(clock.at[i], other.at[i]);
    clock.level = std::max(clock.level, other.level);
    clock.point = both(clock.point, other.point);
    clock.sent = both(clock.sent, other.sent);
  }

  Cell& cell(int rank, int at) {
    return cells_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(plan_.cells()) +
                  static_cast<std::size_t>(at)];
  }

  void place_chunks() {
    result_.schedule.chunks = plan_.chunks();
    ChunkPlaces& places = result_.schedule.places.emplace();
    places.cells = plan_.cells();
    places.first.assign(cells_.size(), -1);
    places.last.assign(cells_.size(), -1);
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto base = static_cast<std::size_t>(rank) * static_cast<std::size_t>(places.cells);
      for (int i = 0; i < plan_.input; ++i) {
        const int at = plan_.input_cell(rank, i);
        places.first[base + static_cast<std::size_t>(at)] = plan_.input_chunk(rank, i);
        const bool empty = plan_.collective == TransferKind::kBroadcast && rank > 0;
        cell(rank, at).filled = !empty;
      }
      for (int i = 0; i < plan_.output; ++i)
        places.last[base + static_cast<std::size_t>(plan_.output_cell(rank, i))] =
            plan_.output_chunk(rank, i);
    }
  }

  bool done(std::size_t block) const { return next_[block] == plan_.blocks[block].ops.size(); }
  const PlanOp& op(std::size_t block) const { return plan_.blocks[block].ops[next_[block]]; }

  bool can_run(std::size_t block) {
    if (done(block)) return false;
    const PlanOp& next = op(block);
    const bool signalled = std::all_of(next.waits.begin(), next.waits.end(), [&](int signal) {
      return !signals_[static_cast<std::size_t>(signal)].empty();
    });
    const bool acquired = std::all_of(next.acquires.begin(), next.acquires.end(), [&](int id) {
      return semaphores_[static_cast<std::size_t>(id)].count > 0;
    });
    if (!signalled || !acquired) return false;
    if (next.barrier) return static_cast<int>(at_barrier(block).size()) >= next.barrier_blocks;
    return std::all_of(next.moves.begin(), next.moves.end(), [&](const PlanMove& move) {
      if (!move.awaited) return true;
      for (int i = 0; i < move.from.count; ++i)
        if (!cell(move.from.rank, move.from.first + i).packets) return false;
      return true;
    });
  }

  /// Blocks of the same rank that are at the barrier of this one.
  std::vector<std::size_t> at_barrier(std::size_t block) const {
    std::vector<std::size_t> there;
    for (std::size_t other = 0; other < plan_.blocks.size(); ++other) {
      if (plan_.blocks[other].rank == plan_.blocks[block].rank && !done(other) &&
          op(other).barrier == op(block).barrier)
        there.push_back(other);
    }
    return there;
  }

  void run(std::size_t block) {
    if (op(block).barrier) {
      meet(at_barrier(block));
      return;
    }
    const PlanOp& now = op(block);
    PlanClock& clock = clocks_[block];
    for (const int signal : now.waits) {
      auto& queue = signals_[static_cast<std::size_t>(signal)];
      join(queue.front(), clock);
      queue.erase(queue.begin());
    }
    for (const int id : now.acquires) {
      Semaphore& semaphore = semaphores_[static_cast<std::size_t>(id)];
      --semaphore.count;
      join(semaphore.clock, clock);
    }
    for (const PlanMove& move : now.moves) {
      for (int i = 0; move.awaited && i < move.from.count; ++i)
        join(cell(move.from.rank, move.from.first + i).clock, clock);
    }
    ++clock.at[block];
    if (!now.moves.empty()) ++clock.level;
    int turn = 0, start = clock.point;
    for (const PlanMove& move : now.moves) {
      if (move.turn != turn) start = clock.point;
      turn = move.turn;
      carry(block, now, move, start);
    }
    for (const int signal : now.signals) {  // behind all that was written
      auto& queue = signals_[static_cast<std::size_t>(signal)];
      queue.push_back(clock);
      queue.back().point = both(clock.point, clock.sent);
    }
    for (const int id : now.releases) {
      Semaphore& semaphore = semaphores_[static_cast<std::size_t>(id)];
      ++semaphore.count;
      join(clock, semaphore.clock);
    }
    ++next_[block];
  }

  void meet(const std::vector<std::size_t>& blocks) {
    PlanClock together = clocks_[blocks.front()];
    for (const std::size_t block : blocks) join(clocks_[block], together);
    for (const std::size_t block : blocks) {
      join(together, clocks_[block]);
      ++clocks_[block].at[block];
      ++next_[block];
    }
  }

  /// @param start point where the move begins
  void carry(std::size_t block, const PlanOp& now, const PlanMove& move, int start) {
    const PlanRange& from = move.from;
    const PlanRange& to = move.to;
    int arrived = start;
    if (from.rank != to.rank) {
      flows_[{from.rank, to.rank}] += from.count * (move.packets ? 2.0 : 1.0);
      arrived = add_point({start, -1, from.rank, to.rank});
      // Who reads waits; who writes goes on.
      PlanClock& clock = clocks_[block];
      int& waiting = to.rank == plan_.blocks[block].rank ? clock.point : clock.sent;
      waiting = both(waiting, arrived);
    }
    for (int i = 0; i < from.count; ++i) {
      read(block, now, from.rank, from.first + i);
      if (move.add) read(block, now, to.rank, to.first + i);
      write(block, now, to.rank, to.first + i, move.packets);
      if (!move.packets) continue;
      PlanClock& packets = cell(to.rank, to.first + i).clock;
      packets.point = arrived;
      packets.sent = -1;  // flags tell of these words alone
    }
    if (from.rank == to.rank && from.first == to.first) return;
    const int step = clocks_[block].level * kTurns + move.turn;
    result_.schedule.messages.push_back({step,
                                         from.rank,
                                         to.rank,
                                         {from.first, from.count},
                                         move.add ? ChunkOp::kReduce : ChunkOp::kCopy,
                                         to.first});
    result_.places.push_back(now.where);
    result_.lengths.push_back(now.length);
  }

  bool before(const PlanAccess& access, std::size_t block) const {
    return access.time <= clocks_[block].at[access.block];
  }

  void read(std::size_t block, const PlanOp& now, int rank, int at) {
    Cell& cell = this->cell(rank, at);
    if (!cell.filled) fail(now, "reads " + name(rank, at) + ", which nothing has written");
    if (!before(cell.written, block))
      fail(now, "reads " + name(rank, at) + " while " + who(cell.written) + " may write it");
    std::erase_if(cell.read, [&](const PlanAccess& other) { return other.block == block; });
    cell.read.push_back({block, clocks_[block].at[block]});
  }

  void write(std::size_t block, const PlanOp& now, int rank, int at, bool packets) {
    Cell& cell = this->cell(rank, at);
    if (!before(cell.written, block))
      fail(now, "writes " + name(rank, at) + " while " + who(cell.written) + " may write it");
    for (const PlanAccess& other : cell.read)
      if (!before(other, block))
        fail(now, "writes " + name(rank, at) + " while " + who(other) + " may read it");
    cell.read.clear();
    cell.filled = true;
    cell.written = {block, clocks_[block].at[block]};
    cell.packets = packets;
    if (packets) cell.clock = clocks_[block];
  }

  /// "chunk 3 of the scratch memory of rank 1"
  std::string name(int rank, int at) const {
    const int scratch = plan_.cells() - plan_.scratch;
    const bool output = !plan_.in_place && at >= plan_.input && at < scratch;
    const int index = at >= scratch ? at - scratch : output ? at - plan_.input : at;
    const char* buffer = at >= scratch    ? "scratch memory"
                         : output         ? "output"
                         : plan_.in_place ? "buffer"
                                          : "input";
    return "chunk " + std::to_string(index) + " of the " + buffer + " of rank " +
           std::to_string(rank);
  }

  std::string who(const PlanAccess& access) const {
    const int rank = plan_.blocks[access.block].rank;
    std::size_t first = access.block;
    while (first > 0 && plan_.blocks[first - 1].rank == rank) --first;
    return "thread block " + std::to_string(access.block - first) + " of rank " +
           std::to_string(rank);
  }

  [[noreturn]] void fail(const PlanOp& now, const std::string& what) {
    diagnostics_.error(now.where, now.length, what);
    diagnostics_.throw_if_errors();
    throw std::logic_error("unreachable: an error was reported");
  }

  [[noreturn]] void fail_stuck() {
    for (std::size_t block = 0; block < plan_.blocks.size(); ++block)
      if (!done(block)) fail(op(block), "waits for something that never comes");
    throw std::logic_error("a plan that is done waits");
  }

  const ExecutionPlan& plan_;
  config::Diagnostics& diagnostics_;
  std::vector<Cell> cells_;  // by rank and cell
  std::vector<PlanClock> clocks_;
  std::vector<std::size_t> next_;  // operation of each block
  std::vector<std::vector<PlanClock>> signals_;
  std::vector<Semaphore> semaphores_;
  std::map<std::pair<int, int>, double> flows_;
  PlanSchedule result_;
};

}  // namespace

StepCount longest_chain(const Collective& collective,
                        const std::vector<PlanSchedule::Point>& points) {
  std::vector<StepCount> chains(points.size());
  StepCount longest;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const PlanSchedule::Point& point = points[i];
    for (const int before : {point.before, point.other})
      if (before >= 0) chains[i] = longer(chains[i], chains[static_cast<std::size_t>(before)]);
    if (point.from >= 0) chains[i] = chains[i] + collective.step(point.from, point.to);
    longest = longer(longest, chains[i]);
  }
  return longest;
}

PlanSchedule schedule_of(const ExecutionPlan& plan, config::Diagnostics& diagnostics) {
  constexpr double kMostCounters = 1 << 26;
  const double counters =
      static_cast<double>(plan.ranks) * plan.ranks * static_cast<double>(plan.cells());
  const double clocks =
      static_cast<double>(plan.ranks) * plan.cells() * static_cast<double>(plan.blocks.size());
  if (counters > kMostCounters || clocks > kMostCounters)
    diagnostics.error(plan.where, 1, "the plan is too large to be proved right");
  diagnostics.throw_if_errors();
  return PlanRun(plan, diagnostics).result();
}

}  // namespace orrery
