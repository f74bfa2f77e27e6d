// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "device/swizzle.h"

namespace orrery::measure::layouts_test {
namespace {

TEST(Swizzle, ChunkIsXoredWithTheRowModulo8) {
  EXPECT_EQ(tile_offset(0, 0), 0u);
  EXPECT_EQ(tile_offset(1, 0), 128u + 16u);              // chunk 0 ^ 1
  EXPECT_EQ(tile_offset(3, 2 * 16 + 5), 384u + 16 + 5);  // chunk 2 ^ 3 = 1
  EXPECT_EQ(tile_offset(8, 0), 1024u);                   // the pattern starts anew
  EXPECT_EQ(tile_offset(15, 7 * 16), 15u * 128);         // chunk 7 ^ 7 = 0
}

TEST(Swizzle, EveryByteOfATileHasItsOwnPlace) {
  std::set<std::uint32_t> places;
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t byte = 0; byte < 128; ++byte) places.insert(tile_offset(row, byte));
  }
  EXPECT_EQ(places.size(), 16u * 128);
  EXPECT_EQ(*places.rbegin(), 16u * 128 - 1);
}

TEST(MatrixDescriptor, FieldsLieWhereThePtxIsaPutsThem) {
  const std::uint64_t descriptor = matrix_descriptor(0x1C400);
  EXPECT_EQ(descriptor & 0x3FFF, 0x1C40u);      // address / 16
  EXPECT_EQ((descriptor >> 32) & 0x3FFF, 64u);  // 8 rows of 128 bytes, / 16
  EXPECT_EQ((descriptor >> 49) & 0x7, 0u);      // no base offset
  EXPECT_EQ(descriptor >> 62, 1u);              // 128-byte swizzle
  EXPECT_EQ((descriptor >> 14) & 0x3, 0u);      // reserved
  EXPECT_EQ((descriptor >> 30) & 0x3, 0u);      // reserved
}

/// What wgmma reads for row `row`, byte `byte` of one step's 32 bytes: rows in groups of 8 at the
/// stride, 128 bytes apart within, and the swizzle applied to the address.
std::uint32_t address_read(std::uint64_t descriptor, std::uint32_t row, std::uint32_t byte) {
  const auto start = static_cast<std::uint32_t>(descriptor & 0x3FFF) << 4;
  const auto stride = static_cast<std::uint32_t>((descriptor >> 32) & 0x3FFF) << 4;
  const std::uint32_t address = start + row / 8 * stride + row % 8 * 128 + byte;
  return address ^ (((address >> 7) & 7) << 4);
}

TEST(MatrixDescriptor, EveryStepReadsTheBytesThatWereStoredForIt) {
  constexpr std::uint32_t kTile = 0x2400;  // a multiple of 1024
  for (int step = 0; step < kStepsPerTile; ++step) {
    const std::uint64_t descriptor = descriptor_of_step(matrix_descriptor(kTile), step);
    for (std::uint32_t row = 0; row < 256; ++row) {
      for (std::uint32_t byte = 0; byte < 32; ++byte) {
        const auto of_tile = static_cast<std::uint32_t>(step) * 32 + byte;
        ASSERT_EQ(address_read(descriptor, row, byte), kTile + tile_offset(row, of_tile));
      }
    }
  }
}

TEST(Accumulators, CoverTheResultOnce) {
  for (const int n : {8, 96, 256}) {
    std::set<std::pair<int, int>> places;
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < n / 2; ++i) {
        places.emplace(accumulator_row(thread, i), accumulator_column(thread, i));
      }
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(64 * n));
    EXPECT_EQ(*places.rbegin(), std::make_pair(63, n - 1));
  }
}

TEST(Accumulators, FollowTheFigureOfThePtxIsa) {
  // Thread 0 holds (0,0) (0,1) (8,0) (8,1) (0,8) ...; thread 1 starts at column 2, thread 4 at row
  // 1, warp 1 at row 16.
  EXPECT_EQ(accumulator_column(0, 1), 1);
  EXPECT_EQ(accumulator_row(0, 2), 8);
  EXPECT_EQ(accumulator_column(0, 2), 0);
  EXPECT_EQ(accumulator_row(0, 4), 0);
  EXPECT_EQ(accumulator_column(0, 4), 8);
  EXPECT_EQ(accumulator_column(1, 0), 2);
  EXPECT_EQ(accumulator_row(4, 0), 1);
  EXPECT_EQ(accumulator_row(32, 0), 16);
}

TEST(Fragments, CoverTheStepOnceAndFollowTheFigureOfThePtxIsa) {
  std::set<std::pair<int, int>> words;
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < 4; ++i) words.emplace(fragment_row(thread, i), fragment_byte(thread, i));
  }
  EXPECT_EQ(words.size(), 64u * 8);
  // bf16: register 1 is row 8, columns 0-1; register 2 row 0, columns 8-9 (byte 16).
  EXPECT_EQ(fragment_row(0, 1), 8);
  EXPECT_EQ(fragment_byte(0, 1), 0);
  EXPECT_EQ(fragment_row(0, 2), 0);
  EXPECT_EQ(fragment_byte(0, 2), 16);
  EXPECT_EQ(fragment_byte(3, 0), 12);
}

TEST(ChunkOffset, RowsOfAMatrixLieInDifferentBanks) {
  for (const int chunks : {8, 16}) {
    std::set<std::uint32_t> places;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int first = 0; first < 64; first += 8) {
        std::set<std::uint32_t> banks;
        for (int row = first; row < first + 8; ++row) {
          const std::uint32_t offset = chunk_offset(row, chunk, chunks);
          banks.insert(offset / 16 % 8);
          places.insert(offset);
        }
        EXPECT_EQ(banks.size(), 8u);
      }
    }
    EXPECT_EQ(places.size(), static_cast<std::size_t>(64 * chunks));
    EXPECT_LT(*places.rbegin(), static_cast<std::uint32_t>(64 * chunks * 16));
  }
}

TEST(TmaBox, IsLegalWithinTheDriversLimits) {
  EXPECT_TRUE(box_is_legal(256, 64, 2, true));   // 128 bytes of bf16
  EXPECT_FALSE(box_is_legal(257, 64, 2, true));  // more than 256 rows
  EXPECT_FALSE(box_is_legal(64, 128, 2, true));  // 256 bytes do not swizzle at 128
  EXPECT_TRUE(box_is_legal(64, 128, 2, false));
  EXPECT_FALSE(box_is_legal(64, 3, 4, false));  // 12 bytes
  EXPECT_FALSE(box_is_legal(0, 64, 2, false));
}

/// An mbarrier as the PTX ISA describes it: a phase completes when all arrivals have come, and a
/// wait for a parity passes when the phase of that parity is complete, that is, not the current
/// one.
struct Barrier {
  int arrivals = 1, pending = 1;
  std::uint32_t phase = 0;
  void arrive() {
    if (--pending == 0) {
      pending = arrivals;
      phase ^= 1;
    }
  }
  bool passes(std::uint32_t parity) const { return phase != parity; }
};

/// Runs a ring as the kernels do, consumer and producer by turns, each as far as it gets; the
/// consumer releases a slot `late` steps after it used it. Steps consumed in order, or -1 when both
/// are stuck.
int run_ring(int stages, int steps, int late) {
  std::vector<Barrier> full(static_cast<std::size_t>(stages)), empty(full);
  std::vector<int> slots(full.size(), -1);
  int produced = 0, consumed = 0;
  bool moved = true;
  while (consumed < steps && moved) {
    moved = false;
    for (; produced < steps; ++produced, moved = true) {
      const auto slot = static_cast<std::size_t>(produced % stages);
      const int use = produced / stages;
      if (use > 0 && !empty[slot].passes(phase_parity(use - 1))) break;
      slots[slot] = produced;
      full[slot].arrive();
    }
    for (; consumed < steps; ++consumed, moved = true) {
      const auto slot = static_cast<std::size_t>(consumed % stages);
      if (!full[slot].passes(phase_parity(consumed / stages))) break;
      if (slots[slot] != consumed) return -2;
      if (consumed >= late) empty[static_cast<std::size_t>((consumed - late) % stages)].arrive();
    }
  }
  return consumed == steps ? consumed : -1;
}

TEST(PhaseParity, RingDeliversEveryStepInOrder) {
  for (const int stages : {1, 2, 3, 8}) EXPECT_EQ(run_ring(stages, 100, 0), 100);
  for (const int stages : {2, 3, 8}) EXPECT_EQ(run_ring(stages, 100, 1), 100);
}

TEST(PhaseParity, OneStageDeadlocksWhenSlotsAreReleasedLate) { EXPECT_EQ(run_ring(1, 100, 1), -1); }

}  // namespace
}  // namespace orrery::measure::layouts_test
