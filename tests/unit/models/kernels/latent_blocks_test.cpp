// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/latent_blocks.h"

#include <gtest/gtest.h>

namespace orrery::latent_blocks_test {
namespace {

constexpr double kUnits = 148;  // of a B200

LatentBlocks at(double sequences, double heads, double context) {
  return latent_blocks(sequences, heads, context, kUnits);
}

TEST(LatentBlocks, HeadsFillTilesOf8And16AndThenGoToMoreBlocks) {
  EXPECT_EQ(at(256, 1, 1024).tile, 8);
  EXPECT_EQ(at(256, 8, 1024).tile, 8);
  EXPECT_EQ(at(256, 9, 1024).tile, 16);
  EXPECT_EQ(at(256, 16, 1024).blocks, 256);
  EXPECT_EQ(at(256, 17, 1024).blocks, 512);
}

TEST(LatentBlocks, ManyHeadsStayInSmallTilesWhileAPartIsShortAndAllBlocksFit) {
  EXPECT_EQ(at(8, 64, 4096).kernel, LatentKernel::kFewHeads);  // 32 blocks: 4 parts of 1,024
  EXPECT_EQ(at(8, 64, 8192).kernel, LatentKernel::kKept);
  EXPECT_EQ(at(37, 64, 256).kernel, LatentKernel::kFewHeads);  // 148 blocks
  EXPECT_EQ(at(38, 64, 256).kernel, LatentKernel::kKept);
  EXPECT_EQ(at(1024, 32, 131072).kernel, LatentKernel::kFewHeads);
}

TEST(LatentBlocks, MoreThan64HeadsGoToPairs) {
  EXPECT_EQ(at(128, 64, 1024).kernel, LatentKernel::kKept);
  EXPECT_EQ(at(128, 64, 1024).blocks, 128);
  EXPECT_EQ(at(128, 128, 1024).kernel, LatentKernel::kPaired);
  EXPECT_EQ(at(128, 128, 1024).blocks, 256);
  EXPECT_EQ(at(128, 129, 1024).blocks, 512);
}

TEST(LatentBlocks, PartsHaveTwoStepsAtLeastAndFillIdleUnits) {
  EXPECT_EQ(at(1, 16, 512).parts, 1);
  EXPECT_EQ(at(1, 16, 513).parts, 2);
  EXPECT_EQ(at(16, 16, 65536).parts, 9);
  EXPECT_EQ(at(74, 16, 65536).parts, 2);
  EXPECT_EQ(at(75, 16, 65536).parts, 1);
  EXPECT_EQ(at(64, 64, 256).parts, 1);
  EXPECT_EQ(at(64, 64, 257).parts, 2);  // in steps of 128
}

TEST(LatentBlocks, ValuesAreSplitOverUnitsThatAreIdleStill) {
  EXPECT_EQ(at(37, 16, 256).values, 4);
  EXPECT_EQ(at(38, 16, 256).values, 2);
  EXPECT_EQ(at(74, 16, 256).values, 2);
  EXPECT_EQ(at(75, 16, 256).values, 1);
  EXPECT_EQ(at(38, 64, 256).values, 2);
  EXPECT_EQ(at(38, 128, 256).values, 1);  // pairs have them split already
  // A single sequence leaves none idle.
  EXPECT_EQ(at(1, 16, 32768).values, 4);
  EXPECT_EQ(at(2, 16, 32768).values, 1);
}

TEST(LatentBlocks, PartsMeetInAClusterWhileThatFits) {
  EXPECT_EQ(at(16, 16, 512).reduction, LatentReduction::kNone);
  EXPECT_EQ(at(16, 16, 1024).reduction, LatentReduction::kCluster);
  EXPECT_EQ(at(1, 16, 1024).reduction, LatentReduction::kMemory);   // a single sequence
  EXPECT_EQ(at(16, 16, 4096).reduction, LatentReduction::kMemory);  // 16 clusters of 8
  EXPECT_EQ(at(2, 16, 16384).reduction, LatentReduction::kMemory);  // 32 parts
  EXPECT_EQ(at(64, 128, 4096).reduction, LatentReduction::kNone);
  EXPECT_EQ(at(32, 128, 4096).reduction, LatentReduction::kSeparate);
}

TEST(LatentBlocks, LargeClustersThatFillTheDeviceRunTwice) {
  EXPECT_EQ(at(2, 16, 4096).rounds, 1);  // 64 blocks in clusters of 8
  EXPECT_EQ(at(4, 16, 4096).blocks, 128);
  EXPECT_EQ(at(4, 16, 4096).rounds, 2);
  EXPECT_EQ(at(8, 16, 2048).blocks, 128);
  EXPECT_EQ(at(8, 16, 2048).rounds, 1);  // in clusters of 4
}

TEST(LatentBlocks, NoUnitIsLeftForMoreBlocksThanARoundHas) {
  for (const double sequences : {1., 3., 8., 50., 148., 149., 1000.}) {
    for (const double heads : {1., 16., 24., 32., 48., 64., 128., 256.}) {
      for (const double context : {1., 300., 4096., 100000.}) {
        const LatentBlocks plan = at(sequences, heads, context);
        EXPECT_LE(plan.blocks, plan.rounds * kUnits);
        EXPECT_GE(plan.tile * plan.head_blocks, heads);
        EXPECT_GE(plan.blocks, sequences * plan.parts);
        EXPECT_EQ(plan.parts > 1, plan.reduction != LatentReduction::kNone);
      }
    }
  }
}

}  // namespace
}  // namespace orrery::latent_blocks_test
