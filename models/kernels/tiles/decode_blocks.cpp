// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/decode_kernels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace orrery {
namespace {

constexpr double kStepTokens = 128;  ///< no block has less of a context
/// Most lengths; where there are more, near ones take the time of their mean. An event costs what
/// there are kinds at work, and this many are within 1 % of the longest block.
constexpr std::size_t kMostKinds = 64;

/// us of a unit's pipe that a block takes.
double pipe_us(const DecodeTime& time, double units) {
  if (time.rounds > 0) return time.work / time.rounds;
  return time.work * units / std::max(time.blocks, units);
}

BlockKind kind_of(const DecodeTime& time, double units, double miss) {
  BlockKind kind;
  kind.pipe_us = pipe_us(time, units);
  kind.chain_us = time.wait;
  kind.cache_bytes = time.bytes / time.blocks;
  kind.memory_bytes = kind.cache_bytes * miss;
  return kind;
}

/// Whole places, so that blocks come in equal waves in which waits hide.
std::int64_t places(const DecodeTime& time, double units, double blocks) {
  if (time.rounds > 0) return std::llround(std::ceil(blocks / time.rounds - 1e-9));
  const double hidden =
      std::max(time.least_blocks, std::ceil(time.wait / pipe_us(time, units) - 1e-9));
  const double waves = std::max(1.0, std::floor(blocks / (units * hidden)));
  return std::llround(std::ceil(blocks / waves - 1e-9));
}

/// All but kinds and launch order.
/// @param blocks of the launch
BlockPlan plan_of(const DecodeProblem& device, const DecodeTime& of, double blocks) {
  BlockPlan plan;
  BlockMachine& machine = plan.machine;
  machine.units = std::llround(device.units);
  machine.places = places(of, device.units, blocks);
  machine.memory_bytes_per_us = of.memory > 0 ? of.bytes * of.miss / of.memory : device.memory;
  machine.cache_bytes_per_us = device.cache_rate;
  const double through_cache = device.cache_rate > 0 ? of.bytes / device.cache_rate : 0;
  plan.launch_us = of.launch;
  plan.extra_us = of.after;
  plan.scale = (of.body - of.after) / std::max({of.work, of.wait, of.memory, through_cache});
  return plan;
}

/// Sequences of one length, or of nearly one.
struct Alike {
  double tokens = 0;  ///< tokens of all together
  double sequences = 0;
  DecodeTime time;       ///< were all sequences so long
  std::size_t kind = 0;  ///< kind of their blocks

  double mean() const { return tokens / sequences; }
};

/// All lengths by what they are alike in, and what a sequence is.
struct Lengths {
  std::map<std::int64_t, Alike> alike;
  std::int64_t width = 1;  ///< tokens by which those that are alike differ at most
  double longest = 0, sequences = 0;

  explicit Lengths(const std::vector<std::int64_t>& all) {
    const std::set<std::int64_t> distinct(all.begin(), all.end());
    const std::int64_t most = *distinct.rbegin();
    if (distinct.size() > kMostKinds)
      width = (most + static_cast<std::int64_t>(kMostKinds) - 1) /
              static_cast<std::int64_t>(kMostKinds);
    longest = static_cast<double>(most);
    sequences = static_cast<double>(all.size());
    for (const std::int64_t length : all) {
      Alike& those = of(length);
      those.tokens += static_cast<double>(length);
      ++those.sequences;
    }
  }
  Alike& of(std::int64_t length) { return alike[(length - 1) / width]; }
};

/// Keys of each sequence in the order of the launch.
std::vector<std::int64_t> lengths_of(const Kernel& kernel) {
  if (!kernel.attention.lengths.empty()) return kernel.attention.lengths;
  const auto sequences = std::max<std::int64_t>(1, kernel.attention.sequences);
  return std::vector<std::int64_t>(static_cast<std::size_t>(sequences),
                                   std::max<std::int64_t>(1, kernel.n));
}

/// The time of every length; all contexts are split as the longest one, but into no parts of less
/// than a step.
void set_times(Lengths& lengths, const TimeAtLength& at) {
  const double splits = at(lengths.longest, 0).splits;
  std::size_t kind = 0;
  for (auto& [place, those] : lengths.alike) {
    const double most = std::max(1.0, std::ceil(those.mean() / kStepTokens));
    const bool longest = place == lengths.alike.rbegin()->first;
    those.time = at(those.mean(), longest ? splits : std::min(splits, most));
    those.kind = kind++;
  }
}

void add_run(std::vector<BlockRun>& launch, std::size_t kind, std::int64_t count) {
  if (!launch.empty() && launch.back().kind == kind) {
    launch.back().count += count;
  } else {
    launch.push_back({kind, count});
  }
}

/// What a kernel computes, and reads and writes by way of the L2, by the bytes of blocks.
void share_out(const Kernel& kernel, BlockPlan& plan) {
  double bytes = 0;
  for (const BlockRun& run : plan.launch)
    bytes += static_cast<double>(run.count) * plan.kinds[run.kind].cache_bytes;
  const double moved = (kernel.read + kernel.written).base();
  for (BlockKind& kind : plan.kinds) {
    kind.flops = kernel.matrix_flops.base() * kind.cache_bytes / bytes;
    if (moved > 0) kind.cache_bytes *= moved / bytes;
  }
}

}  // namespace

BlockPlan decode_plan(const Kernel& kernel, const DecodeProblem& device, const DecodeTime& of,
                      const TimeAtLength& at) {
  const std::vector<std::int64_t> all = lengths_of(kernel);
  Lengths lengths(all);
  set_times(lengths, at);
  std::vector<BlockRun> launch;
  double blocks = 0;
  for (const std::int64_t length : all) {
    const Alike& those = lengths.of(length);
    const std::int64_t count = std::llround(those.time.blocks / lengths.sequences);
    add_run(launch, those.kind, count);
    blocks += static_cast<double>(count);
  }
  BlockPlan plan = plan_of(device, of, blocks);
  for (const auto& [place, those] : lengths.alike)
    plan.kinds.push_back(kind_of(those.time, device.units, of.miss));
  plan.launch = std::move(launch);
  share_out(kernel, plan);
  return plan;
}

BlockPlan even_plan(const Kernel& kernel, const DecodeProblem& device, const DecodeTime& of,
                    const DecodeTime& all) {
  BlockPlan plan = plan_of(device, of, all.blocks);
  plan.kinds = {kind_of(all, device.units, of.miss)};
  plan.launch = {{0, std::llround(all.blocks)}};
  share_out(kernel, plan);
  return plan;
}

}  // namespace orrery
