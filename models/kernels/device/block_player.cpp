// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/block_player.h"

#include <functional>
#include <limits>
#include <queue>

namespace orrery {
namespace {

/// What a block wants that does nothing else; finite, so that sums of it are.
constexpr double kUnbounded = 1e200;

/// Blocks that hold each other up: all rates change with every start and end. Blocks of a kind go
/// at one rate and end in the order of their starts, so that an event costs no more than there are
/// kinds at work.
class Player {
 public:
  Player(const std::vector<BlockKind>& kinds, const std::vector<BlockRun>& launch,
         const BlockMachine& machine, std::int64_t repeats)
      : kinds_(kinds),
        launch_(launch),
        machine_(machine),
        loops_(kinds.size()),
        batches_(kinds.size()),
        memory_{machine.memory_bytes_per_us, machine.memory_exponent},
        cache_{machine.cache_bytes_per_us, machine.cache_exponent},
        repeats_(repeats) {
    free_ = machine.places > 0 ? machine.places : machine.units * machine.blocks_per_unit;
    alone_ = free_ <= machine.units;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      loops_[k].memory.bytes = kinds[k].memory_bytes;
      loops_[k].cache.bytes = kinds[k].cache_bytes;
      loops_[k].memory_wait = kinds[k].memory_wait_us;
      cached_ = cached_ || kinds[k].cache_bytes > 0;
    }
    if (alone_on_units())
      for (std::size_t k = 0; k < kinds.size(); ++k) set_own(k, 1, kForever);
  }

  BlockSchedule play() {
    start_blocks();
    while (!at_work_.empty() || !latencies_.empty()) {
      const double loop = pace();
      const double latency = latencies_.empty() ? kForever : latencies_.top().end - now_;
      advance(std::min(loop, std::max(0.0, latency)));
      ++schedule_.events;
      start_blocks();
    }
    schedule_.duration_us = std::max(latest_, now_);
    return schedule_;
  }

 private:
  /// Blocks of one kind in their main loop that started together.
  struct Batch {
    double start = 0;  ///< progress of the kind at that moment
    std::int64_t count = 0;
  };
  /// The batches of one kind in the order of their starts, which is that of their ends.
  struct Batches {
    std::vector<Batch> all;
    std::size_t first = 0;  ///< index of the batch that ends next
  };
  /// Blocks that fill or write.
  struct Latency {
    double end = 0;
    std::size_t kind = 0;
    std::int64_t count = 0;
    bool fill = false;
    bool operator>(const Latency& other) const { return end > other.end; }
  };

  /// Fills free places in launch order.
  void start_blocks() {
    while (free_ > 0 && repeats_ > 0) {
      if (next_run_ == launch_.size()) {
        next_run_ = 0;
        --repeats_;
        continue;
      }
      const BlockRun& run = launch_[next_run_];
      const std::int64_t count = std::min(free_, run.count - started_);
      if (count > 0 && kinds_[run.kind].fill_us > 0) {
        latencies_.push({now_ + kinds_[run.kind].fill_us, run.kind, count, true});
      } else if (count > 0) {
        begin_loop(run.kind, count);
      }
      free_ -= count;
      started_ += count;
      if (started_ == run.count) {
        ++next_run_;
        started_ = 0;
      }
    }
  }

  void begin_loop(std::size_t kind, std::int64_t count) {
    const BlockKind& k = kinds_[kind];
    if (k.fixed_us + k.pipe_us + k.memory_bytes + k.cache_bytes + k.memory_wait_us + k.chain_us <=
        0) {
      end_loop(kind, count);
      return;
    }
    Loops& loops = loops_[kind];
    Batches& batches = batches_[kind];
    if (loops.blocks == 0) {
      batches.all.clear();
      batches.first = 0;
      loops.progress = 0;
      loops.end = 1;
      at_work_.push_back(&loops);
    }
    loops.blocks += static_cast<double>(count);
    in_loops_ += count;
    if (!batches.all.empty() && loops.progress - batches.all.back().start <= kSameTime) {
      batches.all.back().count += count;
    } else {
      batches.all.push_back({loops.progress, count});
    }
  }

  void end_loop(std::size_t kind, std::int64_t count) {
    const double drain = kinds_[kind].epilogue_us;
    if (machine_.persistent || drain <= 0) {
      latest_ = std::max(latest_, now_ + drain);
      free_ += count;
    } else {
      latencies_.push({now_ + drain, kind, count, false});
    }
  }

  /// Whether nothing but the memory can hold a main loop up.
  bool alone_on_units() const { return !cached_ && alone_; }
  double port(double share) const {
    return machine_.unit_bytes_per_us > 0 ? machine_.unit_bytes_per_us * share : kForever;
  }
  /// @param share of its unit's pipe that a block has
  /// @param cache bytes a microsecond that it gets from the L2
  void set_own(std::size_t k, double share, double cache) {
    const BlockKind& kind = kinds_[k];
    const double pipe =
        joined(kind.pipe_us / share, kind.cache_bytes / cache, machine_.cache_exponent);
    loops_[k].own =
        std::max({kind.fixed_us + pipe, kind.memory_bytes / port(share), kind.chain_us});
    loops_[k].memory.wish = loops_[k].own > 0 ? kind.memory_bytes / loops_[k].own : kUnbounded;
  }

  /// @return us until the first main loop ends
  double pace() {
    if (!alone_on_units()) share_units();
    const double level = memory_.level<&Loops::memory>(at_work_);
    return set_rates(at_work_, 1 / level, machine_.memory_exponent);
  }

  /// Blocks spread evenly over units: where there are more loops than units they share pipes.
  void share_units() {
    const auto units = static_cast<double>(machine_.units);
    const double share = std::min(1.0, units / static_cast<double>(in_loops_));
    for (Loops* loops : at_work_) {
      const BlockKind& kind = kinds_[index_of(loops)];
      const double pipe = std::max(kind.pipe_us / share, kind.cache_bytes / port(share));
      const double own = std::max(kind.fixed_us + pipe, kind.chain_us);
      loops->cache.wish = own > 0 ? kind.cache_bytes / own : kUnbounded;
    }
    const double cache = std::min(port(share), cache_.level<&Loops::cache>(at_work_));
    for (const Loops* loops : at_work_) set_own(index_of(loops), share, cache);
  }

  void advance(double step) {
    now_ += step;
    ended_.clear();
    go_on(at_work_, step, at_end_);
    for (Loops* loops : at_end_) end_batches(index_of(loops));
    if (idle_ > 0) {
      const auto idle = [](const Loops* loops) { return loops->blocks == 0; };
      at_work_.erase(std::remove_if(at_work_.begin(), at_work_.end(), idle), at_work_.end());
      idle_ = 0;
    }
    for (const BlockRun& run : ended_) {
      in_loops_ -= run.count;
      add_work(schedule_, kinds_[run.kind], static_cast<double>(run.count));
      end_loop(run.kind, run.count);
    }
    while (!latencies_.empty() && latencies_.top().end <= now_ * (1 + kSameTime)) {
      const Latency latency = latencies_.top();
      latencies_.pop();
      if (latency.fill) {
        begin_loop(latency.kind, latency.count);
      } else {
        free_ += latency.count;
      }
    }
  }

  std::size_t index_of(const Loops* loops) const {
    return static_cast<std::size_t>(loops - loops_.data());
  }

  void end_batches(std::size_t kind) {
    Loops& loops = loops_[kind];
    Batches& batches = batches_[kind];
    std::int64_t count = 0;
    while (loops.blocks > 0 && loops.left() <= kSameTime) {
      count += batches.all[batches.first].count;
      loops.blocks -= static_cast<double>(batches.all[batches.first++].count);
      if (loops.blocks > 0) loops.end = batches.all[batches.first].start + 1;
    }
    ended_.push_back({kind, count});
    idle_ += loops.blocks == 0 ? 1 : 0;
  }

  const std::vector<BlockKind>& kinds_;
  const std::vector<BlockRun>& launch_;
  const BlockMachine& machine_;
  std::vector<Loops> loops_;      ///< main loops by kind
  std::vector<Batches> batches_;  ///< batches by kind
  SharedServer memory_, cache_;
  AtWork at_work_;
  AtWork at_end_;                ///< those of them with blocks that end in this event
  std::vector<BlockRun> ended_;  ///< blocks that end in this event
  std::priority_queue<Latency, std::vector<Latency>, std::greater<>> latencies_;
  double now_ = 0, latest_ = 0;
  std::int64_t repeats_ = 1;
  std::size_t next_run_ = 0;
  std::int64_t started_ = 0;   ///< blocks started of the next run
  std::int64_t free_ = 0;      ///< places for blocks
  std::int64_t in_loops_ = 0;  ///< blocks in main loops
  std::int64_t idle_ = 0;      ///< kinds at work whose last block has ended
  bool alone_ = false;         ///< there are no more places than units
  bool cached_ = false;        ///< some blocks read the L2
  BlockSchedule schedule_;
};

}  // namespace

BlockSchedule play_together(const std::vector<BlockKind>& kinds,
                            const std::vector<BlockRun>& launch, const BlockMachine& machine,
                            std::int64_t repeats) {
  return Player(kinds, launch, machine, repeats).play();
}

}  // namespace orrery
