// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "models/kernels/device/block_schedule.h"

namespace orrery {

/// Moments closer than this share of the time are one moment: rounding must not split waves.
inline constexpr double kSameTime = 1e-12;

/// (a^p + b^p)^(1/p), where it can without pow(), which would be most of the work.
inline double joined(double a, double b, double p) {
  if (b <= 0 || a <= 0) return std::max({a, b, 0.0});
  if (p == 0) return std::max(a, b);
  if (p == 2) return std::sqrt(a * a + b * b);
  if (p == 3) return std::cbrt(a * a * a + b * b * b);
  if (p == 4) return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
  const double most = std::max(a, b);
  return most * std::pow(1 + std::pow(std::min(a, b) / most, p), 1 / p);
}

/// Sums over blocks of what they do.
inline void add_work(BlockSchedule& schedule, const BlockKind& kind, double blocks) {
  schedule.memory_bytes += kind.memory_bytes * blocks;
  schedule.cache_bytes += kind.cache_bytes * blocks;
  schedule.pipe_busy_us += kind.pipe_us * blocks;
  schedule.flops += kind.flops * blocks;
}

/// play_blocks() for blocks that hold each other up: all rates change with every start and end.
BlockSchedule play_together(const std::vector<BlockKind>& kinds,
                            const std::vector<BlockRun>& launch, const BlockMachine& machine,
                            std::int64_t repeats);

/// A time, in us, or a rate that nothing ends or bounds.
inline constexpr double kForever = std::numeric_limits<double>::infinity();

/// The load that main loops of one kind put on a server.
struct Claim {
  double bytes = 0;  ///< bytes of a main loop
  double wish = 0;   ///< bytes a microsecond that keep up with the rest of it
};

/// All main loops of one kind of block, which go at one rate. Every event looks at those of all
/// kinds at work, so this is small.
struct Loops {
  double progress = 0;     ///< main loops that a block could have done since the start
  double end = 0;          ///< progress at which the next block ends
  double rate = 0;         ///< main loops a microsecond, as they go now
  double own = 0;          ///< us of a main loop but for the memory
  double memory_wait = 0;  ///< us until the first byte from the memory
  double blocks = 0;       ///< number of blocks, whole
  Claim memory, cache;

  /// Until the next block ends.
  double left() const { return std::max(0.0, end - progress); }
};

/// The kinds that have blocks in their main loop, in the order of their starts.
using AtWork = std::vector<Loops*>;

/// A server that main loops share max-min fairly.
class SharedServer {
 public:
  /// @param capacity bytes a microsecond, 0 where it limits nothing
  /// @param exponent of the p-norm with what else a block does (BlockMachine)
  SharedServer(double capacity, double exponent) : capacity_(capacity), exponent_(exponent) {}

  /// The most bytes a microsecond that a block gets when the server carries all it can: everyone
  /// gets the same, except who wants less. Infinite where it never holds a block up. Where the
  /// server could carry more than all want, it is what the hungriest would get if all wanted more
  /// in proportion; only p-norms see that.
  /// @param claim on this server
  template <Claim Loops::*claim>
  double level(const AtWork& at_work);

 private:
  /// The load of blocks of one kind, of one block and of all.
  struct Wish {
    double each = 0, blocks = 0, all = 0;
  };
  struct Demand {
    double all = 0, blocks = 0;
    double least_hungry = 0;  ///< least wish of those that want no less than the last level
    std::size_t content = 0;  ///< kinds that want less
  };

  template <Claim Loops::*claim>
  Demand demand(const AtWork& at_work);
  template <Claim Loops::*claim>
  double saturated(const AtWork& at_work, const Demand& demand) const;

  double capacity_ = 0, exponent_ = 0;
  double last_ = kForever;     ///< level of the event before
  std::vector<Wish> content_;  ///< kinds that want less than that
};

/// Sets the rates of main loops where a byte takes `each` us of the memory and waiting for it adds
/// to other work as a p-norm.
/// @return us until the first block ends
double set_rates(const AtWork& at_work, double each, double exponent);

/// Main loops go on for `step` us.
/// @param at_end kinds of which blocks have ended, in the same order
void go_on(const AtWork& at_work, double step, AtWork& at_end);

}  // namespace orrery
