// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/block_schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>

#include "models/kernels/device/block_player.h"

namespace orrery {
namespace {

/// Blocks of independent kinds that are played one by one: half a millisecond of work, at least a
/// hundred blocks a unit.
constexpr std::int64_t kPlayedBlocks = 16384;

/// The main loop of a block that has its unit to itself and servers that keep up.
double loop_alone(const BlockKind& kind, const BlockMachine& machine) {
  double pipe = kind.pipe_us;
  if (machine.unit_bytes_per_us > 0) {
    const double port = machine.unit_bytes_per_us;
    pipe = joined(pipe, kind.cache_bytes / port, machine.cache_exponent);
    pipe = std::max(pipe, kind.memory_bytes / port);
  }
  return std::max({kind.fixed_us + pipe, kind.memory_wait_us, kind.chain_us});
}

/// Whether blocks can never wait for each other but for a unit.
bool independent(const std::vector<BlockKind>& kinds, const BlockMachine& machine) {
  if (machine.blocks_per_unit != 1 || machine.places > 0) return false;
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

}  // namespace

BlockSchedule play_blocks(const std::vector<BlockKind>& kinds, const std::vector<BlockRun>& launch,
                          const BlockMachine& machine, std::int64_t repeats) {
  if (machine.units <= 0 || machine.blocks_per_unit <= 0 || machine.places < 0)
    throw std::invalid_argument("a machine without units");
  for (const BlockRun& run : launch)
    if (run.kind >= kinds.size()) throw std::invalid_argument("no such kind of block");
  if (launch.empty()) return {};
  if (independent(kinds, machine)) return play_apart(kinds, launch, machine, repeats);
  return play_together(kinds, launch, machine, repeats);
}

}  // namespace orrery
