// SPDX-License-Identifier: Apache-2.0
#include "host/sweeps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "device/permutation.h"
#include "device/words.h"
#include "host/sampling.h"

namespace orrery::measure::sweeps_test {
namespace {

using testing::Each;
using testing::ElementsAre;

DeviceInfo hopper() {
  DeviceInfo device;
  device.major = 9;
  device.sms = 132;
  device.l2_bytes = 60 * kMiB;
  device.memory_bytes = 141 * kGiB;
  return device;
}

TEST(Rotation, CopiesTogetherExceedTwiceTheL2) {
  // Twice the L2 is 120 MiB: 12 copies of 10 MiB are just that, 13 exceed it.
  EXPECT_EQ(rotation(hopper(), static_cast<std::size_t>(10 * kMiB)), 13);
  EXPECT_EQ(rotation(hopper(), static_cast<std::size_t>(119 * kMiB)), 2);
  EXPECT_EQ(rotation(hopper(), static_cast<std::size_t>(120 * kMiB)), 2);
  EXPECT_EQ(rotation(hopper(), static_cast<std::size_t>(120 * kMiB) + 1), 1);
}

TEST(Rotation, StaysWithinItsMemory) {
  EXPECT_EQ(
      rotation(hopper(), static_cast<std::size_t>(10 * kMiB), static_cast<std::size_t>(45 * kMiB)),
      4);
  EXPECT_EQ(rotation(hopper(), static_cast<std::size_t>(10 * kMiB), 1), 1);
  EXPECT_EQ(rotation(hopper(), 0), 1);
  EXPECT_EQ(rotation(hopper(), 1), 4096);
}

TEST(LaunchesPerSample, LastTwoHundredMicroseconds) {
  EXPECT_EQ(launches_per_sample(10, 1), 20);
  EXPECT_EQ(launches_per_sample(30, 1), 7);  // 6.67 rounded up
  EXPECT_EQ(launches_per_sample(5000, 1), 1);
  EXPECT_EQ(launches_per_sample(0.01, 1), 256);
  EXPECT_EQ(launches_per_sample(0, 1), 256);
}

TEST(LaunchesPerSample, VisitEveryCopyEquallyOften) {
  EXPECT_EQ(launches_per_sample(10, 13), 26);
  EXPECT_EQ(launches_per_sample(5000, 13), 13);
  EXPECT_EQ(launches_per_sample(10, 1000), 1000);
}

TEST(Permutation, IsABijectionForEverySizeAndSeed) {
  for (const std::uint32_t n : {1u, 2u, 3u, 7u, 8u, 100u, 255u, 256u, 257u, 4097u}) {
    for (const std::uint32_t seed : {0u, 1u, 0xDEADBEEFu}) {
      std::set<std::uint32_t> places;
      for (std::uint32_t i = 0; i < n; ++i) places.insert(place(i, n, seed));
      EXPECT_EQ(places.size(), n) << seed;
      EXPECT_EQ(*places.rbegin(), n - 1) << seed;
    }
  }
}

TEST(Permutation, CountsBits) {
  EXPECT_EQ(bits_for(1), 0);
  EXPECT_EQ(bits_for(2), 1);
  EXPECT_EQ(bits_for(3), 2);
  EXPECT_EQ(bits_for(4), 2);
  EXPECT_EQ(bits_for(1u << 31), 31);
  EXPECT_EQ(bits_for((1u << 31) + 1), 32);
}

TEST(Permutation, SeldomGoesToTheNextElement) {
  // A random order of n steps from x to x + 1 about once; a prefetcher would live on such steps.
  constexpr std::uint32_t kN = 4096;
  int steps = 0;
  for (std::uint32_t i = 0; i + 1 < kN; ++i) {
    if (place(i + 1, kN, 7) == place(i, kN, 7) + 1) ++steps;
  }
  EXPECT_LT(steps, 12);
}

TEST(Words, SumDoesNotDependOnWhereItIsCut) {
  EXPECT_EQ(sum_of_words(5, 0, 1000), sum_of_words(5, 0, 321) + sum_of_words(5, 321, 1000));
  EXPECT_NE(sum_of_words(5, 0, 1000), sum_of_words(6, 0, 1000));
}

TEST(Octaves, DivideEachPowerEvenly) {
  EXPECT_THAT(octaves(1024, 4096, 1, 128), ElementsAre(1024, 2048, 4096));
  EXPECT_THAT(octaves(1024, 4096, 2, 128), ElementsAre(1024, 1536, 2048, 3072, 4096));
  // 1024 + 1024/4 = 1280; the granule of 1024 rounds it down to one that is there already.
  EXPECT_THAT(octaves(1024, 2048, 4, 1024), ElementsAre(1024, 2048));
}

TEST(CtaCounts, GoFromOneToFourPerMultiprocessor) {
  EXPECT_THAT(cta_counts(132, Depth::kQuick), ElementsAre(1, 4, 16, 66, 132, 264, 528));
  EXPECT_THAT(cta_counts(132, Depth::kFull),
              ElementsAre(1, 2, 4, 8, 16, 32, 33, 49, 66, 82, 99, 115, 132, 264, 528));
}

TEST(ChasePoints, ReachFromOneKilobyteToEightGigabytes) {
  for (const Depth depth : {Depth::kQuick, Depth::kFull}) {
    const auto points = chase_points(141 * kGiB, depth);
    EXPECT_EQ(points.front().bytes, kKiB);
    std::int64_t most = 0;
    for (const ChasePoint& point : points) {
      most = std::max(most, point.bytes);
      EXPECT_GE(point.bytes / point.stride, 4);
      EXPECT_LT(point.bytes / point.stride, std::int64_t{1} << 32);
    }
    EXPECT_EQ(most, 8 * kGiB);
  }
  // 24 powers of two; strides of 32 B and 4 KiB at six footprints, of 2 MiB where at least four
  // fit (8 MiB up): 24 + 6 + 6 + 4.
  EXPECT_EQ(chase_points(141 * kGiB, Depth::kQuick).size(), 40u);
}

TEST(ChasePoints, LeaveHalfTheMemoryFree) {
  for (const ChasePoint& point : chase_points(4 * kGiB, Depth::kFull)) {
    EXPECT_LE(point.bytes, 2 * kGiB);
  }
}

TEST(L2Footprints, MeetHalfAndWholeL2AndGoToTwice) {
  const auto sizes = l2_footprints(60 * kMiB, Depth::kQuick);
  EXPECT_EQ(sizes.front(), kMiB);
  EXPECT_EQ(sizes.back(), 120 * kMiB);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 30 * kMiB), 1);
  EXPECT_EQ(std::count(sizes.begin(), sizes.end(), 60 * kMiB), 1);
  // 1, 2, 4 ... 64 MiB and the multiples of 15 MiB up to 120: 7 + 8.
  EXPECT_EQ(sizes.size(), 15u);
}

TEST(Window, AllBlocksTogetherVisitEveryChunkAboutEquallyOften) {
  for (const std::uint32_t blocks : {1u, 7u, 132u, 528u}) {
    for (const std::uint32_t chunks : {16u, 48u, 1920u}) {
      std::vector<int> visits(chunks);
      for (std::uint32_t block = 0; block < blocks; ++block) {
        const Window window = window_of(block, blocks, chunks, 64);
        EXPECT_LT(window.first, chunks);
        EXPECT_GE(window.count, 64u);
        EXPECT_GE(std::uint64_t{window.count} * blocks, 2 * chunks);
        for (std::uint32_t j = 0; j < window.count; ++j) ++visits[(window.first + j) % chunks];
      }
      const auto [least, most] = std::minmax_element(visits.begin(), visits.end());
      EXPECT_GE(*least, 2) << blocks << " blocks, " << chunks << " chunks";
      // Firsts are rounded down, so that a chunk may be met by one window more or less.
      EXPECT_LE(*most - *least, 2) << blocks << " blocks, " << chunks << " chunks";
    }
  }
}

TEST(GridPoints, DivideIntoClustersAndReachFiveWaves) {
  const auto points = grid_points(hopper(), Depth::kQuick);
  std::set<int> clusters;
  std::int64_t most = 0;
  for (const GridPoint& point : points) {
    EXPECT_GT(point.grid, 0);
    EXPECT_EQ(point.grid % point.cluster, 0);
    clusters.insert(point.cluster);
    if (point.occupancy == 1) most = std::max(most, point.grid);
  }
  EXPECT_THAT(clusters, ElementsAre(1, 2, 4, 8, 16));
  EXPECT_GT(most, 5 * 132);
  EXPECT_LE(most, 5 * 132 + 16);
}

TEST(GridPoints, HaveOneBlockMoreThanAWave) {
  const auto points = grid_points(hopper(), Depth::kQuick);
  const auto is_tail = [](const GridPoint& point) {
    return point.grid == 133 && point.occupancy == 1 && point.cluster == 1 && !point.bimodal;
  };
  EXPECT_EQ(std::count_if(points.begin(), points.end(), is_tail), 1);
}

TEST(GridPoints, HaveNoClustersBeforeHopper) {
  DeviceInfo ampere = hopper();
  ampere.major = 8;
  std::vector<int> clusters;
  for (const GridPoint& point : grid_points(ampere, Depth::kFull)) {
    clusters.push_back(point.cluster);
  }
  EXPECT_THAT(clusters, Each(1));
}

TEST(RowPoints, HaveColumnsThatTheKernelDivides) {
  for (const Depth depth : {Depth::kQuick, Depth::kFull}) {
    for (const RowPoint& point : row_points(depth)) {
      EXPECT_GE(point.cols, 256);
      EXPECT_LE(point.cols, 16384);
      EXPECT_EQ(point.cols & (point.cols - 1), 0) << "a power of two";
    }
  }
  // Rows x columns, cold and warm: 4 * 3 * 2; then 6 numbers of exponentials at 3 columns.
  EXPECT_EQ(row_points(Depth::kQuick).size(), 42u);
}

}  // namespace
}  // namespace orrery::measure::sweeps_test
