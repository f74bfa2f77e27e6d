// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/block_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/units/hash.h"

namespace orrery::block_schedule_test {
namespace {

/// 132 units, a block each, 4 MB/us of memory, 8 MB/us of L2.
BlockMachine machine() { return {132, 1, 4e6, 8e6, 0}; }

/// 1 us fill, 10 us of pipe, 1 us epilogue, no bytes.
BlockKind computing() { return {1, 10, 0, 0, 1}; }

TEST(BlockSchedule, OneWaveTakesOneBlock) {
  EXPECT_DOUBLE_EQ(play_blocks({computing()}, {{0, 1}}, machine()).duration_us, 12);
  EXPECT_DOUBLE_EQ(play_blocks({computing()}, {{0, 132}}, machine()).duration_us, 12);
}

TEST(BlockSchedule, OneBlockMoreThanTheUnitsTakesAnotherWave) {
  EXPECT_DOUBLE_EQ(play_blocks({computing()}, {{0, 133}}, machine()).duration_us, 24);
  EXPECT_DOUBLE_EQ(play_blocks({computing()}, {{0, 264}}, machine()).duration_us, 24);
  EXPECT_DOUBLE_EQ(play_blocks({computing()}, {{0, 265}}, machine()).duration_us, 36);
}

TEST(BlockSchedule, AMemoryBoundGridTakesItsBytesOverTheBandwidth) {
  // 132 blocks of 1 MB at 4 MB/us: 33 us in the main loop, where each block alone takes 1 us.
  const BlockKind kind{1, 1, 1e6, 0, 1};
  const BlockSchedule s = play_blocks({kind}, {{0, 132}}, machine());
  EXPECT_NEAR(s.duration_us, 1 + 33 + 1, 1e-9);
  EXPECT_NEAR(s.memory_bytes, 132e6, 1e-3);
}

TEST(BlockSchedule, WhatOneUnitTakesInBoundsALoneBlock) {
  BlockMachine m = machine();
  m.unit_bytes_per_us = 0.1e6;
  // 1 MB at 0.1 MB/us: 10 us, though the memory would deliver in a quarter.
  EXPECT_NEAR(play_blocks({{0, 1, 1e6, 0, 0}}, {{0, 1}}, m).duration_us, 10, 1e-9);
}

TEST(BlockSchedule, TwoBlocksOnAUnitShareItsPipeAndHideEachOthersLatencies) {
  BlockMachine two = machine();
  two.blocks_per_unit = 2;
  // All 264 run at once, each at half speed: 1 + 20 + 1.
  EXPECT_DOUBLE_EQ(play_blocks({computing()}, {{0, 264}}, two).duration_us, 22);
}

TEST(BlockSchedule, AShortBlockFreesItsUnitForTheNext) {
  // Two units; blocks of 10, 1 and 9 us: the third starts when the second ends.
  const std::vector<BlockKind> kinds = {{0, 10, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 9, 0, 0, 0}};
  const BlockSchedule s = play_blocks(kinds, {{0, 1}, {1, 1}, {2, 1}}, {2, 1, 0, 0, 0});
  EXPECT_DOUBLE_EQ(s.duration_us, 10);
  EXPECT_DOUBLE_EQ(s.pipe_busy_us, 20);
}

TEST(BlockSchedule, ABlockThatNeedsLessLeavesItsShareToTheOthers) {
  // 4 bytes/us: one block wants 1 a us (10 of pipe, 10 bytes), the other all it can get (30 bytes).
  const std::vector<BlockKind> kinds = {{0, 10, 10, 0, 0}, {0, 1, 30, 0, 0}};
  const BlockSchedule s = play_blocks(kinds, {{0, 1}, {1, 1}}, {2, 1, 4, 0, 0});
  EXPECT_NEAR(s.duration_us, 10, 1e-9);  // both end at 10: 3 a us for the second
}

TEST(BlockSchedule, EqualBlocksCostAFewEventsAWave) {
  const BlockSchedule s = play_blocks({{1, 10, 1e3, 1e3, 1}}, {{0, 132 * 100}}, machine());
  EXPECT_LE(s.events, 100 * 3U);
}

TEST(BlockSchedule, NothingToDoTakesNoTime) {
  EXPECT_EQ(play_blocks({computing()}, {{0, 0}}, machine()).duration_us, 0);
  EXPECT_EQ(play_blocks({}, {}, machine()).duration_us, 0);
}

TEST(BlockSchedule, AMachineWithoutUnitsIsAnError) {
  EXPECT_THROW(play_blocks({computing()}, {{0, 1}}, {0, 1, 1, 1, 0}), std::invalid_argument);
  EXPECT_THROW(play_blocks({computing()}, {{1, 1}}, machine()), std::invalid_argument);
}

/// A grid of blocks of several kinds, drawn from `seed`.
struct Grid {
  std::vector<BlockKind> kinds;
  std::vector<BlockRun> launch;
  double bytes = 0, pipe_us = 0, longest = 0;
};

Grid grid(std::uint64_t seed) {
  Grid g;
  for (int i = 0; i < 5; ++i) {
    const double pipe = 20 * next_uniform(seed), bytes = 2e5 * next_uniform(seed);
    g.kinds.push_back({next_uniform(seed), pipe, bytes, bytes * 2, next_uniform(seed)});
  }
  for (int i = 0; i < 40; ++i) {
    const auto kind = static_cast<std::size_t>(next_random(seed) % 5);
    const auto count = static_cast<std::int64_t>(next_random(seed) % 60);
    g.launch.push_back({kind, count});
    g.bytes += g.kinds[kind].memory_bytes * static_cast<double>(count);
    g.pipe_us += g.kinds[kind].pipe_us * static_cast<double>(count);
    if (count > 0)
      g.longest = std::max(
          g.longest, g.kinds[kind].fill_us + g.kinds[kind].pipe_us + g.kinds[kind].epilogue_us);
  }
  return g;
}

TEST(BlockSchedule, ConservesWorkAndKeepsItsBounds) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Grid g = grid(seed);
    const BlockSchedule s = play_blocks(g.kinds, g.launch, machine());
    EXPECT_NEAR(s.memory_bytes, g.bytes, 1e-9 * g.bytes) << seed;
    EXPECT_NEAR(s.pipe_busy_us, g.pipe_us, 1e-9 * g.pipe_us) << seed;
    EXPECT_GE(s.duration_us, g.bytes / 4e6 * (1 - 1e-9)) << seed;
    EXPECT_GE(s.duration_us, 2 * g.bytes / 8e6 * (1 - 1e-9)) << seed;
    EXPECT_GE(s.duration_us, g.pipe_us / 132 * (1 - 1e-9)) << seed;
    EXPECT_GE(s.duration_us, g.longest * (1 - 1e-9)) << seed;
  }
}

TEST(BlockSchedule, MoreBandwidthIsNeverSlower) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Grid g = grid(seed);
    double before = play_blocks(g.kinds, g.launch, machine()).duration_us;
    for (const double factor : {1.5, 3.0, 10.0}) {
      BlockMachine better = machine();
      better.memory_bytes_per_us *= factor;
      better.cache_bytes_per_us *= factor;
      const double after = play_blocks(g.kinds, g.launch, better).duration_us;
      // List scheduling has anomalies (Graham, 1969), but never more than a block's length of them.
      EXPECT_LE(after, before + g.longest) << seed;
      before = after;
    }
  }
}

TEST(BlockSchedule, RepeatsOfALaunchOrderAreTheOrderWrittenOutAgain) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Grid g = grid(seed);
    for (const double bandwidth : {4e6, 4e9}) {  // blocks that hold each other up, and do not
      BlockMachine m = machine();
      m.memory_bytes_per_us = m.cache_bytes_per_us = bandwidth;
      std::vector<BlockRun> three;
      for (int i = 0; i < 3; ++i) three.insert(three.end(), g.launch.begin(), g.launch.end());
      const BlockSchedule once = play_blocks(g.kinds, three, m);
      const BlockSchedule repeated = play_blocks(g.kinds, g.launch, m, 3);
      EXPECT_DOUBLE_EQ(repeated.duration_us, once.duration_us) << seed;
      EXPECT_NEAR(repeated.memory_bytes, once.memory_bytes, 1e-9 * once.memory_bytes) << seed;
    }
  }
}

TEST(BlockSchedule, VeryManyRepeatsTakeTheirWorkInTheMiddle) {
  // 64 kinds of growing blocks, 20,000 heads: only the first 16,384 blocks are played.
  std::vector<BlockKind> kinds;
  std::vector<BlockRun> launch;
  double work = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    kinds.push_back({0, 1.0 + static_cast<double>(i), 0, 0, 0});
    launch.push_back({i, 1});
    work += kinds.back().pipe_us;
  }
  const BlockSchedule s = play_blocks(kinds, launch, machine(), 20000);
  EXPECT_LT(s.events, 40000U);
  EXPECT_GE(s.duration_us, 20000 * work / 132 * (1 - 1e-9));
  EXPECT_LE(s.duration_us, 20000 * work / 132 + 64);
  EXPECT_NEAR(s.pipe_busy_us, 20000 * work, 1e-9 * s.pipe_busy_us);
}

TEST(BlockSchedule, BlocksThatCannotHoldEachOtherUpAreTheSameOnBothWays) {
  // A p-norm sends blocks the long way even where the memory is nearly idle.
  const Grid g = grid(3);
  BlockMachine apart = machine(), shared = machine();
  apart.memory_bytes_per_us = apart.cache_bytes_per_us = 1e12;
  shared.memory_bytes_per_us = shared.cache_bytes_per_us = 1e12;
  shared.memory_exponent = 4;
  EXPECT_NEAR(play_blocks(g.kinds, g.launch, shared).duration_us,
              play_blocks(g.kinds, g.launch, apart).duration_us, 1e-6);
}

TEST(BlockSchedule, APersistentBlockWritesWhileTheNextComputes) {
  BlockMachine m = machine();
  m.persistent = true;
  // 1 + 10 each, and the last tile is written alone.
  EXPECT_DOUBLE_EQ(play_blocks({computing()}, {{0, 264}}, m).duration_us, 2 * 11 + 1);
}

TEST(BlockSchedule, WorkAndMemoryThatTakeAsLongHideEachOtherByThePNorm) {
  BlockMachine m = machine();
  m.memory_exponent = 4;
  // 132 blocks of 10 us and of 4 MB/us x 10 us / 132 bytes each.
  const BlockKind kind{0, 10, 4e7 / 132, 0, 0};
  EXPECT_NEAR(play_blocks({kind}, {{0, 132}}, m).duration_us, 10 * std::pow(2, 0.25), 1e-9);
  m.memory_exponent = 1.6;
  EXPECT_NEAR(play_blocks({kind}, {{0, 132}}, m).duration_us, 10 * std::pow(2, 1 / 1.6), 1e-9);
}

TEST(BlockSchedule, NoMainLoopIsShorterThanItsChainOfSteps) {
  BlockKind kind;
  kind.pipe_us = 2;
  kind.chain_us = 10;
  BlockMachine m = machine();
  EXPECT_DOUBLE_EQ(play_blocks({kind}, {{0, 1}}, m).duration_us, 10);
  EXPECT_DOUBLE_EQ(play_blocks({kind}, {{0, 264}}, m).duration_us, 20);
  // Four blocks on a unit share its pipe behind one chain, eight of them do not.
  m.places = 4 * 132;
  EXPECT_DOUBLE_EQ(play_blocks({kind}, {{0, 4 * 132}}, m).duration_us, 10);
  m.places = 8 * 132;
  EXPECT_DOUBLE_EQ(play_blocks({kind}, {{0, 8 * 132}}, m).duration_us, 16);
}

TEST(BlockSchedule, PlacesMakeWavesThatNeedNotFillUnitsEvenly) {
  BlockMachine m = machine();
  m.places = 198;  // a block and a half on each unit
  BlockKind kind;
  kind.pipe_us = 2;
  EXPECT_NEAR(play_blocks({kind}, {{0, 396}}, m).duration_us, 6, 1e-9);
  m.places = -1;
  EXPECT_THROW(play_blocks({kind}, {{0, 1}}, m), std::invalid_argument);
}

TEST(BlockSchedule, TwiceGivesTheSameBits) {
  const Grid g = grid(7);
  EXPECT_EQ(play_blocks(g.kinds, g.launch, machine()).duration_us,
            play_blocks(g.kinds, g.launch, machine()).duration_us);
}

}  // namespace
}  // namespace orrery::block_schedule_test
