// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/block_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>

namespace orrery {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
/// Moments closer than this share of the time are one moment: rounding must not split waves.
constexpr double kSameTime = 1e-12;

enum class Phase : std::uint8_t { kFill, kLoop, kEpilogue };

/// Blocks of one kind in the same phase at the same point of it. `sharing` is the number of blocks
/// in their main loop on each of their units.
struct Activity {
  std::size_t kind = 0;
  Phase phase = Phase::kFill;
  std::int64_t count = 0;
  double left = 1;  ///< share of the phase still to do
  double rate = 0;  ///< of it per microsecond
};

class Player {
 public:
  Player(const std::vector<BlockKind>& kinds, const std::vector<BlockRun>& launch,
         const BlockMachine& machine)
      : kinds_(kinds), launch_(launch), machine_(machine) {
    if (machine.units <= 0 || machine.blocks_per_unit <= 0)
      throw std::invalid_argument("a machine without units");
    for (const BlockRun& run : launch)
      if (run.kind >= kinds.size()) throw std::invalid_argument("no such kind of block");
    free_ = machine.units * machine.blocks_per_unit;
  }

  BlockSchedule play() {
    start_blocks();
    while (!active_.empty()) {
      set_rates();
      double step = kForever;
      for (const Activity& a : active_) step = std::min(step, a.left / a.rate);
      advance(step);
      ++schedule_.events;
      start_blocks();
    }
    return schedule_;
  }

 private:
  /// Fills free places in launch order.
  void start_blocks() {
    while (free_ > 0 && next_run_ < launch_.size()) {
      const BlockRun& run = launch_[next_run_];
      const std::int64_t count = std::min(free_, run.count - started_);
      if (count > 0) join({run.kind, Phase::kFill, count, 1, 0});
      free_ -= count;
      started_ += count;
      if (started_ == run.count) {
        ++next_run_;
        started_ = 0;
      }
    }
  }

  void join(const Activity& activity) {
    for (Activity& other : active_) {
      if (other.kind == activity.kind && other.phase == activity.phase &&
          std::abs(other.left - activity.left) <= kSameTime) {
        other.count += activity.count;
        return;
      }
    }
    active_.push_back(activity);
  }

  double latency(const Activity& a) const {
    return a.phase == Phase::kFill ? kinds_[a.kind].fill_us : kinds_[a.kind].epilogue_us;
  }

  /// Rates of all activities: latencies run by themselves, main loops share.
  void set_rates() {
    std::int64_t loops = 0;
    for (const Activity& a : active_)
      if (a.phase == Phase::kLoop) loops += a.count;
    // Blocks spread evenly over units: where there are more loops than units they share pipes.
    const double pipe_share = loops > machine_.units
                                  ? static_cast<double>(machine_.units) / static_cast<double>(loops)
                                  : 1;
    looping_.clear();
    double memory = 0, cache = 0;  // what all ask for
    for (std::size_t i = 0; i < active_.size(); ++i) {
      Activity& a = active_[i];
      if (a.phase != Phase::kLoop) {
        a.rate = latency(a) > 0 ? 1 / latency(a) : kForever;
        continue;
      }
      a.rate = alone(kinds_[a.kind], pipe_share);
      const double each = a.rate * static_cast<double>(a.count);
      if (kinds_[a.kind].memory_bytes > 0) memory += each * kinds_[a.kind].memory_bytes;
      if (kinds_[a.kind].cache_bytes > 0) cache += each * kinds_[a.kind].cache_bytes;
      looping_.push_back(i);
    }
    if (over(memory, machine_.memory_bytes_per_us))
      share(machine_.memory_bytes_per_us, &BlockKind::memory_bytes);
    if (over(cache, machine_.cache_bytes_per_us))
      share(machine_.cache_bytes_per_us, &BlockKind::cache_bytes);
  }

  static bool over(double demand, double capacity) { return capacity > 0 && demand > capacity; }

  /// Main loops per microsecond that the unit's own pipe and port allow.
  double alone(const BlockKind& kind, double pipe_share) const {
    double rate = kForever;
    if (kind.pipe_us > 0) rate = pipe_share / kind.pipe_us;
    const double bytes = std::max(kind.memory_bytes, kind.cache_bytes);
    if (bytes > 0 && machine_.unit_bytes_per_us > 0)
      rate = std::min(rate, pipe_share * machine_.unit_bytes_per_us / bytes);
    return rate;
  }

  /// Lowers rates until a server carries no more than it can: everyone gets the same bytes per
  /// microsecond, except who wants less.
  void share(double capacity, double BlockKind::*bytes) {
    wishes_.clear();
    double blocks = 0;
    for (const std::size_t i : looping_) {
      const double each = kinds_[active_[i].kind].*bytes;
      if (!(each > 0)) continue;
      wishes_.push_back({each * active_[i].rate, i});
      blocks += static_cast<double>(active_[i].count);
    }
    std::sort(wishes_.begin(), wishes_.end(), [](const Wish& x, const Wish& y) {
      return std::tie(x.bytes_per_us, x.activity) < std::tie(y.bytes_per_us, y.activity);
    });
    for (const Wish& wish : wishes_) {
      Activity& a = active_[wish.activity];
      const double each = std::min(wish.bytes_per_us, capacity / blocks);
      a.rate = each / (kinds_[a.kind].*bytes);
      capacity -= each * static_cast<double>(a.count);
      blocks -= static_cast<double>(a.count);
    }
  }

  void advance(double step) {
    schedule_.duration_us += step;
    ended_.clear();
    std::size_t kept = 0;
    for (Activity& a : active_) {
      const double done = std::isinf(a.rate) ? a.left : std::min(a.left, a.rate * step);
      a.left -= done;
      if (a.phase == Phase::kLoop) {
        schedule_.memory_bytes += done * kinds_[a.kind].memory_bytes * static_cast<double>(a.count);
        schedule_.pipe_busy_us += done * kinds_[a.kind].pipe_us * static_cast<double>(a.count);
      }
      if (a.left <= kSameTime) {
        ended_.push_back(a);
      } else {
        active_[kept++] = a;
      }
    }
    active_.resize(kept);
    for (const Activity& a : ended_) next_phase(a);
  }

  void next_phase(Activity a) {
    if (a.phase == Phase::kEpilogue) {
      free_ += a.count;
      return;
    }
    a.phase = a.phase == Phase::kFill ? Phase::kLoop : Phase::kEpilogue;
    a.left = 1;
    join(a);
  }

  const std::vector<BlockKind>& kinds_;
  const std::vector<BlockRun>& launch_;
  const BlockMachine& machine_;
  struct Wish {
    double bytes_per_us = 0;
    std::size_t activity = 0;
  };
  std::vector<Activity> active_;
  std::vector<Activity> ended_;       ///< of this event
  std::vector<std::size_t> looping_;  ///< activities in their main loop
  std::vector<Wish> wishes_;          ///< of them, for one server
  std::size_t next_run_ = 0;
  std::int64_t started_ = 0;  ///< of the next run
  std::int64_t free_ = 0;     ///< places for blocks
  BlockSchedule schedule_;
};

}  // namespace

BlockSchedule play_blocks(const std::vector<BlockKind>& kinds, const std::vector<BlockRun>& launch,
                          const BlockMachine& machine) {
  return Player(kinds, launch, machine).play();
}

}  // namespace orrery
