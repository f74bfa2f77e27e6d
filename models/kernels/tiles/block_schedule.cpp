// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/block_schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <stdexcept>

namespace orrery {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
/// What a block wants that does nothing else; finite, so that sums of it are.
constexpr double kUnbounded = 1e200;
/// Moments closer than this share of the time are one moment: rounding must not split waves.
constexpr double kSameTime = 1e-12;
/// Blocks of independent kinds that are played one by one: half a millisecond of work, at least a
/// hundred blocks a unit.
constexpr std::int64_t kPlayedBlocks = 16384;

/// (a^p + b^p)^(1/p), where it can without pow(), which would be most of the work.
double joined(double a, double b, double p) {
  if (b <= 0 || a <= 0) return std::max({a, b, 0.0});
  if (p == 2) return std::sqrt(a * a + b * b);
  if (p == 3) return std::cbrt(a * a * a + b * b * b);
  if (p == 4) return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
  const double most = std::max(a, b);
  return p > 0 ? most * std::pow(1 + std::pow(std::min(a, b) / most, p), 1 / p) : most;
}

/// The main loop of a block that has its unit to itself and servers that keep up.
double loop_alone(const BlockKind& kind, const BlockMachine& machine) {
  double pipe = kind.pipe_us;
  if (machine.unit_bytes_per_us > 0) {
    const double port = machine.unit_bytes_per_us;
    pipe = joined(pipe, kind.cache_bytes / port, machine.cache_exponent);
    pipe = std::max(pipe, kind.memory_bytes / port);
  }
  return std::max(kind.fixed_us + pipe, kind.memory_wait_us);
}

/// Whether blocks can never wait for each other but for a unit.
bool independent(const std::vector<BlockKind>& kinds, const BlockMachine& machine) {
  if (machine.blocks_per_unit != 1) return false;
  double memory = 0, cache = 0;
  for (const BlockKind& kind : kinds) {
    const double loop = loop_alone(kind, machine);
    if (kind.memory_wait_us > 0 && machine.memory_exponent > 0) return false;
    if (kind.memory_bytes > 0) memory = std::max(memory, kind.memory_bytes / loop);
    if (kind.cache_bytes > 0) cache = std::max(cache, kind.cache_bytes / loop);
  }
  const auto units = static_cast<double>(machine.units);
  const auto idle = [units](double each, double capacity, double exponent) {
    return each == 0 || capacity == 0 || (exponent == 0 && each * units <= capacity);
  };
  return idle(memory, machine.memory_bytes_per_us, machine.memory_exponent) &&
         idle(cache, machine.cache_bytes_per_us, machine.cache_exponent);
}

/// Sums over blocks of what they do.
void add_work(BlockSchedule& schedule, const BlockKind& kind, double blocks) {
  schedule.memory_bytes += kind.memory_bytes * blocks;
  schedule.cache_bytes += kind.cache_bytes * blocks;
  schedule.pipe_busy_us += kind.pipe_us * blocks;
  schedule.flops += kind.flops * blocks;
}

/// Independent blocks: a heap of the times at which units are free.
BlockSchedule play_apart(const std::vector<BlockKind>& kinds, const std::vector<BlockRun>& launch,
                         const BlockMachine& machine, std::int64_t repeats) {
  struct Free {
    double at = 0;
    std::int64_t units = 0;
    bool operator>(const Free& other) const { return at > other.at; }
  };
  std::vector<double> busy(kinds.size()), drain(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    busy[i] = kinds[i].fill_us + loop_alone(kinds[i], machine);
    drain[i] = machine.persistent ? kinds[i].epilogue_us : 0;
    if (!machine.persistent) busy[i] += kinds[i].epilogue_us;
  }
  BlockSchedule schedule;
  double work = 0;  // of one repeat
  std::int64_t blocks = 0;
  for (const BlockRun& run : launch) {
    work += busy[run.kind] * static_cast<double>(run.count);
    blocks += run.count;
    add_work(schedule, kinds[run.kind],
             static_cast<double>(run.count) * static_cast<double>(repeats));
  }
  const std::int64_t most = std::max<std::int64_t>(kPlayedBlocks, 128 * machine.units) /
                            std::max<std::int64_t>(1, blocks);
  const std::int64_t played = std::min(repeats, std::max<std::int64_t>(1, most));
  // In the middle of a long kernel no unit waits.
  const double middle =
      static_cast<double>(repeats - played) * work / static_cast<double>(machine.units);
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  free.push({0, machine.units});
  for (std::int64_t repeat = 0; repeat < played; ++repeat) {
    for (const BlockRun& run : launch) {
      for (std::int64_t left = run.count; left > 0;) {
        Free next = free.top();
        free.pop();
        const std::int64_t taken = std::min(left, next.units);
        const double end = next.at + busy[run.kind];
        schedule.duration_us = std::max(schedule.duration_us, end + drain[run.kind]);
        free.push({end, taken});
        next.units -= taken;
        if (next.units > 0) free.push(next);
        left -= taken;
        ++schedule.events;
      }
    }
  }
  schedule.duration_us += middle;
  return schedule;
}

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
        memory_{machine.memory_bytes_per_us, machine.memory_exponent, &BlockKind::memory_bytes,
                &Loops::memory_wish},
        cache_{machine.cache_bytes_per_us, machine.cache_exponent, &BlockKind::cache_bytes,
               &Loops::cache_wish},
        repeats_(repeats) {
    free_ = machine.units * machine.blocks_per_unit;
    for (const BlockKind& kind : kinds) cached_ = cached_ || kind.cache_bytes > 0;
    if (alone_on_units())
      for (std::size_t k = 0; k < kinds.size(); ++k) set_own(k, 1, kForever);
  }

  BlockSchedule play() {
    start_blocks();
    while (!at_work_.empty() || !latencies_.empty()) {
      const double loop = set_rates();
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
  /// All main loops of one kind.
  struct Loops {
    std::vector<Batch> batches;
    std::size_t first = 0;  ///< batch that ends next
    std::int64_t count = 0;
    double progress = 0;     ///< main loops that a block could have done since the start
    double own = 0;          ///< us of a main loop but for the memory
    double rate = 0;         ///< main loops a microsecond, as they go now
    double end = 0;          ///< progress at which the next batch ends
    double memory_wish = 0;  ///< bytes a microsecond
    double cache_wish = 0;
    double left() const { return std::max(0.0, end - progress); }
  };
  /// A server that main loops share.
  struct Server {
    double capacity = 0, exponent = 0;
    double BlockKind::*bytes = nullptr;
    double Loops::*wish = nullptr;
    double last = kForever;  ///< level of the event before
  };
  /// What blocks of one kind want of it, bytes a microsecond, each and all.
  struct Wish {
    double each = 0, blocks = 0, all = 0;
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
    if (k.fixed_us + k.pipe_us + k.memory_bytes + k.cache_bytes + k.memory_wait_us <= 0) {
      end_loop(kind, count);
      return;
    }
    Loops& loops = loops_[kind];
    if (loops.count == 0) {
      loops.batches.clear();
      loops.first = 0;
      loops.progress = 0;
      loops.end = 1;
      at_work_.push_back(kind);
    }
    loops.count += count;
    in_loops_ += count;
    if (!loops.batches.empty() && loops.progress - loops.batches.back().start <= kSameTime) {
      loops.batches.back().count += count;
    } else {
      loops.batches.push_back({loops.progress, count});
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
  bool alone_on_units() const { return !cached_ && machine_.blocks_per_unit == 1; }
  double port(double share) const {
    return machine_.unit_bytes_per_us > 0 ? machine_.unit_bytes_per_us * share : kForever;
  }
  /// @param share of its unit's pipe that a block has
  /// @param cache bytes a microsecond that it gets from the L2
  void set_own(std::size_t k, double share, double cache) {
    const BlockKind& kind = kinds_[k];
    const double pipe =
        joined(kind.pipe_us / share, kind.cache_bytes / cache, machine_.cache_exponent);
    loops_[k].own = std::max(kind.fixed_us + pipe, kind.memory_bytes / port(share));
    loops_[k].memory_wish = loops_[k].own > 0 ? kind.memory_bytes / loops_[k].own : kUnbounded;
  }

  /// @return us until the first main loop ends
  double set_rates() {
    if (!alone_on_units()) {
      // Blocks spread evenly over units: where there are more loops than units they share pipes.
      const auto units = static_cast<double>(machine_.units);
      const double share = std::min(1.0, units / static_cast<double>(in_loops_));
      for (const std::size_t k : at_work_) {
        const BlockKind& kind = kinds_[k];
        const double own =
            kind.fixed_us + std::max(kind.pipe_us / share, kind.cache_bytes / port(share));
        loops_[k].cache_wish = own > 0 ? kind.cache_bytes / own : kUnbounded;
      }
      const double cache = std::min(port(share), level(cache_));
      for (const std::size_t k : at_work_) set_own(k, share, cache);
    }
    const double each = 1 / level(memory_);
    double first = kForever;
    for (const std::size_t k : at_work_) {
      Loops& loops = loops_[k];
      const double wait = kinds_[k].memory_wait_us + kinds_[k].memory_bytes * each;
      const double time = joined(loops.own, wait, machine_.memory_exponent);
      first = std::min(first, loops.left() * time);
      loops.rate = 1 / time;
    }
    return first;
  }

  /// The most bytes a microsecond that a block gets from a server when it carries all it can:
  /// everyone gets the same, except who wants less. Where the server could carry more than all
  /// want, it is what the hungriest would get if all wanted more in proportion; only p-norms see
  /// that.
  double level(Server& server) {
    if (server.capacity <= 0) return kForever;
    double demand = 0, greatest = 0;
    wishes_.clear();
    for (const std::size_t k : at_work_) {
      if (!(kinds_[k].*server.bytes > 0)) continue;
      const auto count = static_cast<double>(loops_[k].count);
      const double each = loops_[k].*server.wish;
      const Wish wish{each, count, each * count};
      wishes_.push_back(wish);
      greatest = std::max(greatest, wish.each);
      demand += wish.all;
    }
    if (wishes_.empty()) return kForever;
    if (demand <= server.capacity)
      return server.exponent == 0 ? kForever : server.capacity * (greatest / demand);
    // Newton's method on a concave function: from wherever it starts, its second point is below the
    // level and those after it rise to it. The last level is a good start.
    double level = std::min(server.last, greatest);
    for (double before = 0; std::abs(level - before) > kSameTime * level;) {
      before = level;
      double rest = server.capacity, others = 0;
      for (const Wish& wish : wishes_) {
        const bool content = wish.each < level;
        rest -= content ? wish.all : 0;
        others += content ? 0 : wish.blocks;
      }
      if (others == 0) return server.last = greatest;  // just enough, but for rounding
      level = rest / others;
    }
    return server.last = level;
  }

  void advance(double step) {
    now_ += step;
    ended_.clear();
    std::size_t kept = 0;
    for (const std::size_t k : at_work_) {
      Loops& loops = loops_[k];
      loops.progress += std::min(loops.rate * step, loops.left());
      if (loops.left() > kSameTime) {
        at_work_[kept++] = k;
        continue;
      }
      const std::int64_t before = loops.count;
      while (loops.count > 0 && loops.left() <= kSameTime) {
        loops.count -= loops.batches[loops.first++].count;
        if (loops.count > 0) loops.end = loops.batches[loops.first].start + 1;
      }
      ended_.push_back({k, before - loops.count});
      if (loops.count > 0) at_work_[kept++] = k;
    }
    at_work_.resize(kept);
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

  const std::vector<BlockKind>& kinds_;
  const std::vector<BlockRun>& launch_;
  const BlockMachine& machine_;
  std::vector<Loops> loops_;  ///< by kind
  Server memory_, cache_;
  std::vector<Wish> wishes_;
  std::vector<std::size_t> at_work_;  ///< kinds that are in their main loop
  std::vector<BlockRun> ended_;       ///< of this event
  std::priority_queue<Latency, std::vector<Latency>, std::greater<>> latencies_;
  double now_ = 0, latest_ = 0;
  std::int64_t repeats_ = 1;
  std::size_t next_run_ = 0;
  std::int64_t started_ = 0;   ///< of the next run
  std::int64_t free_ = 0;      ///< places for blocks
  std::int64_t in_loops_ = 0;  ///< blocks
  bool cached_ = false;        ///< some blocks read the L2
  BlockSchedule schedule_;
};

}  // namespace

BlockSchedule play_blocks(const std::vector<BlockKind>& kinds, const std::vector<BlockRun>& launch,
                          const BlockMachine& machine, std::int64_t repeats) {
  if (machine.units <= 0 || machine.blocks_per_unit <= 0)
    throw std::invalid_argument("a machine without units");
  for (const BlockRun& run : launch)
    if (run.kind >= kinds.size()) throw std::invalid_argument("no such kind of block");
  if (launch.empty()) return {};
  if (independent(kinds, machine)) return play_apart(kinds, launch, machine, repeats);
  return Player(kinds, launch, machine, repeats).play();
}

}  // namespace orrery
