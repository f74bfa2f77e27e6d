// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// Thread blocks of one kind. A block fills its pipeline (a latency), runs its main loop, and
/// writes its tile out (a latency). The main loop uses the unit's own pipe, the L2 and the memory
/// at once, and the slowest of the three sets its pace. The latencies of a block overlap with other
/// blocks, not with its own main loop, since buffers and barriers order them.
struct BlockKind {
  double fill_us = 0;
  double pipe_us = 0;       ///< us of the matrix or vector pipe, alone on its unit
  double memory_bytes = 0;  ///< bytes through the memory
  double cache_bytes = 0;   ///< bytes through the L2
  double epilogue_us = 0;
  double fixed_us = 0;        ///< us of the main loop beside its steps, which nothing hides
  double memory_wait_us = 0;  ///< until the first byte arrives from the memory
  double flops = 0;           ///< FLOPs on the matrix pipe, padding of the tile included
  double chain_us = 0;        ///< us of steps one after the other: the least of the main loop
};

/// Blocks of one kind that stand next to each other in launch order.
struct BlockRun {
  std::size_t kind = 0;
  std::int64_t count = 0;
};

/// The machine under the blocks.
struct BlockMachine {
  std::int64_t units = 0;            ///< SMs that take blocks
  std::int64_t blocks_per_unit = 1;  ///< blocks resident at once, which share the unit's pipe
  double memory_bytes_per_us = 0;
  double cache_bytes_per_us = 0;
  double unit_bytes_per_us = 0;  ///< what one unit takes in at most; 0: no limit
  /// A unit starts its next block while the tile of the last is written.
  bool persistent = false;
  /// p of (t_own^p + t_server^p)^(1/p): how little work beside a server hides when both take about
  /// as long; at least 1. 0: the slower one alone counts. 2, 3 and 4 are the fast ones.
  double memory_exponent = 0;
  double cache_exponent = 0;
  std::int64_t places = 0;  ///< blocks on all units; 0: units x blocks_per_unit
};

struct BlockSchedule {
  double duration_us = 0;
  double memory_bytes = 0;  ///< moved: equal to what the blocks ask for
  double cache_bytes = 0;
  double pipe_busy_us = 0;  ///< us of all units together
  double flops = 0;
  std::uint64_t events = 0;
};

/// Plays the blocks on the machine: a unit takes the next block as soon as one of its places is
/// free. Memory and L2 are shared max-min fairly among main loops. Blocks of one kind that start
/// together stay together, so that a grid of equal blocks costs a few events a wave, whatever its
/// size. Blocks that cannot hold each other up, whatever runs beside them, are played from a heap
/// of free units; of very many repeats of a launch order only the first are, and the others take
/// their work over all units, as they do in the middle of a long kernel.
/// @param repeats how often the whole launch order comes
/// @throws std::invalid_argument for a machine without units or a kind out of range.
BlockSchedule play_blocks(const std::vector<BlockKind>& kinds, const std::vector<BlockRun>& launch,
                          const BlockMachine& machine, std::int64_t repeats = 1);

/// The thread blocks that a kernel is made of, in launch order, and the time it takes without them.
/// The kernel takes launch_us + extra_us + scale * (time of its blocks).
struct BlockPlan {
  std::vector<BlockKind> kinds;
  std::vector<BlockRun> launch;
  std::int64_t repeats = 1;  ///< passes of the launch order: heads of attention, say
  BlockMachine machine;
  double launch_us = 0;  ///< launch overhead
  double extra_us = 0;   ///< kernels before and after, such as adding up partial sums
  /// Effects on the whole kernel alone: clock lost to the power limit, choices of a
  /// library that are not the best.
  double scale = 1;
};

}  // namespace orrery
