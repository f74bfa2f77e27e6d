// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "sim/config/load.h"
#include "sim/machine/kernel_model.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::grouped_gemm_test {
namespace {

constexpr std::int64_t kWidth = 3072, kHidden = 4096;

AcceleratorConfig device(const std::string& name) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return config::load<AcceleratorConfig>(library.locate("accelerators", name, ""), library,
                                         "accelerators");
}

/// The experts' up-projection, `precision` of its operands.
Kernel product(const ExpertLoad& load, Precision precision) {
  Kernel kernel;
  kernel.kind = KernelClass::kGroupedGemm;
  kernel.precision = precision;
  kernel.batch = static_cast<std::int64_t>(load.active);
  kernel.m = static_cast<std::int64_t>(load.rows / load.active);
  kernel.n = kWidth;
  kernel.k = kHidden;
  kernel.load = load;
  const double element = element_bytes(precision), weights = load.active * kWidth * kHidden;
  kernel.matrix_flops = Flops(2 * load.rows * kWidth * kHidden);
  kernel.read = Bytes((weights + load.rows * kHidden) * element);
  kernel.written = Bytes(load.rows * kWidth * 2);
  return kernel;
}

double time_us(const ExpertLoad& load, Precision precision = Precision::kBf16) {
  static const AcceleratorConfig h200 = device("h200_sxm");
  const KernelFamily& family = tile_family(KernelClass::kGroupedGemm);
  const std::vector<double> values = family.priors(h200, precision);
  return family.time(product(load, precision), h200, values.data()).total_us;
}

BlockPlan plan_of(const ExpertLoad& load, Precision precision = Precision::kBf16,
                  double waves = 0.9) {
  static const AcceleratorConfig h200 = device("h200_sxm");
  const KernelFamily& family = tile_family(KernelClass::kGroupedGemm);
  std::vector<double> values = family.priors(h200, precision);
  values[parameter_index(family, "waves")] = waves;
  return family.blocks(product(load, precision), h200, values.data()).value();
}

BlockSchedule play(const BlockPlan& plan) {
  return play_blocks(plan.kinds, plan.launch, plan.machine, plan.repeats);
}

double tiles_us(const ExpertLoad& load, Precision precision = Precision::kBf16) {
  const BlockPlan plan = plan_of(load, precision);
  return plan.launch_us + plan.extra_us + plan.scale * play(plan).duration_us;
}

constexpr Precision kPrecisions[] = {Precision::kBf16, Precision::kFp8, Precision::kFp8Block};

/// The load of equally many rows and active experts, one of them with `hot` rows.
ExpertLoad skewed_load(double active, double rows, double hot) {
  ExpertLoad load = even_load(active, rows, active);
  const ExpertLoad others = even_load(active - 1, rows - hot, active), one = even_load(1, hot, 1);
  for (std::size_t i = 0; i < load.blocks.size(); ++i)
    load.blocks[i] = others.blocks[i] + one.blocks[i];
  return load;
}

TEST(GroupedGemm, NeverBeatsTheMatrixPeakNorTheMemory) {
  const AcceleratorConfig h200 = device("h200_sxm");
  for (const Precision precision : {Precision::kBf16, Precision::kFp8, Precision::kFp8Block}) {
    for (const double rows : {8.0, 256.0, 8192.0, 131072.0}) {
      const ExpertLoad load = even_load(8, rows, 8);
      const Kernel kernel = product(load, precision);
      const double flops = (kernel.matrix_flops / matrix_peak(h200, precision)).base() * 1e6;
      // The weights exceed the L2, so they come from memory every time.
      const double weights = 8.0 * kWidth * kHidden * element_bytes(precision);
      EXPECT_GT(time_us(load, precision), flops);
      EXPECT_GT(time_us(load, precision), weights / h200.memory.bandwidth.value.base() * 1e6);
    }
  }
}

TEST(GroupedGemm, FewTokensTakeTheTimeOfTheirExpertsWeights) {
  // 32 x 3072 x 4096 bf16: 805 MB at 0.95 of 4.8 TB/s is 177 us.
  const double all = time_us(even_load(32, 64, 32)), half = time_us(even_load(16, 32, 32));
  EXPECT_NEAR(all, 177, 0.15 * 177);
  EXPECT_NEAR(all - half, 88, 0.15 * 88);
}

TEST(GroupedGemm, MoreRowsNeverTakeMuchLess) {
  for (const Precision precision : {Precision::kBf16, Precision::kFp8, Precision::kFp8Block}) {
    double before = 0;
    for (double rows = 32; rows <= 65536; rows *= 1.25) {
      const double now = time_us(even_load(32, rows, 32), precision);
      EXPECT_GE(now, 0.9 * before) << rows;  // a better tile may fit the larger product
      before = now;
    }
  }
}

TEST(GroupedGemm, AHotExpertFillsMoreBlocksThanItsRowsInBalance) {
  for (const Precision precision : {Precision::kBf16, Precision::kFp8, Precision::kFp8Block}) {
    const double even = time_us(even_load(32, 512, 32), precision);  // 16 rows each: one block
    EXPECT_GT(time_us(skewed_load(32, 512, 300), precision), even);
  }
}

TEST(GroupedGemm, AFractionOfARowOnAverageFillsFewMoreBlocks) {
  constexpr std::size_t k64 = 3;
  ASSERT_EQ(ExpertLoad::kHeights[k64], 64);
  EXPECT_NEAR(even_load(7.99999, 512, 8).blocks[k64], 8, 1e-3);  // 64.0001 rows each
  EXPECT_DOUBLE_EQ(even_load(8, 8 * 64.5, 8).blocks[k64], 12);   // every other expert has 65
  EXPECT_DOUBLE_EQ(even_load(8, 4, 8).blocks[k64], 8);           // no expert is without
}

TEST(GroupedGemm, ALaterBlockIsAStep) {
  // Rows of an expert that no longer fit a tile of 128 start another.
  const double full = time_us(even_load(32, 32 * 128, 32), Precision::kFp8Block);
  const double before = time_us(even_load(32, 32 * 127, 32), Precision::kFp8Block);
  const double after = time_us(even_load(32, 32 * 129, 32), Precision::kFp8Block);
  EXPECT_GT(after - full, 5 * (full - before));
}

TEST(GroupedGemm, IdleExpertsCostLittleButNotNothing) {
  const double few = time_us(even_load(8, 64, 8)), many = time_us(even_load(8, 64, 256));
  EXPECT_GT(many, few);
  EXPECT_LT(many, 1.5 * few);
}

TEST(GroupedGemm, SortingTheCopiesIsPricedOnce) {
  ExpertLoad load = even_load(32, 65536, 32);
  const double down = time_us(load);
  load.copies = 65536;
  load.choices = 8192 * 256;
  EXPECT_GT(time_us(load), down + 5);
}

TEST(GroupedGemm, MoreTokensThanABlockSortsTakeMorePasses) {
  ExpertLoad load = even_load(32, 2048, 32);
  load.copies = 2048;
  load.choices = 256 * 32;
  const double one_block = time_us(load);
  load.choices = 257 * 32;
  EXPECT_GT(time_us(load), one_block + 1);
}

TEST(GroupedGemm, KernelsWithoutALoadAreEven) {
  Kernel kernel = product(even_load(8, 1024, 8), Precision::kBf16);
  const AcceleratorConfig h200 = device("h200_sxm");
  const KernelFamily& family = tile_family(KernelClass::kGroupedGemm);
  const std::vector<double> values = family.priors(h200, Precision::kBf16);
  const double with = family.time(kernel, h200, values.data()).total_us;
  kernel.load = {};
  EXPECT_DOUBLE_EQ(family.time(kernel, h200, values.data()).total_us, with);
}

TEST(GroupedGemm, TilesOfFullWavesTakeWhatTheClosedFormSays) {
  for (const Precision precision : kPrecisions) {
    for (const double experts : {8.0, 32.0, 128.0}) {
      for (const double rows : {512.0, 1024.0, 1100.0, 4096.0}) {
        const ExpertLoad load = even_load(experts, experts * rows, experts);
        EXPECT_NEAR(tiles_us(load, precision) / time_us(load, precision), 1, 0.05)
            << experts << " " << rows;
      }
    }
  }
}

TEST(GroupedGemm, TilesOfFewTokensDoToo) {
  for (const Precision precision : kPrecisions) {
    for (const double rows : {1.0, 7.0, 16.0}) {
      const ExpertLoad load = even_load(32, 32 * rows, 32);
      EXPECT_NEAR(tiles_us(load, precision) / time_us(load, precision), 1, 0.05) << rows;
    }
  }
}

TEST(GroupedGemm, BlocksDoTheFlopsOfTheirProductUpToTheirTiles) {
  const auto flops = [](double rows) { return 2 * rows * kWidth * kHidden; };
  for (const Precision precision : kPrecisions) {
    for (const double waves : {0.3, 1.0}) {
      for (const ExpertLoad& load : {even_load(32, 40, 32), even_load(32, 32 * 300, 32),
                                     skewed_load(32, 512, 300), skewed_load(8, 8000, 4000)}) {
        const double done = play(plan_of(load, precision, waves)).flops;
        EXPECT_GE(done, flops(load.rows) * (1 - 1e-9)) << load.rows;
        // Every expert's rows are rounded up to 128 at most, features to a tile of 256.
        EXPECT_LE(done, flops(load.rows + 128 * load.active) * (1 + 256.0 / kWidth)) << load.rows;
      }
    }
  }
}

TEST(GroupedGemm, BlocksMoveTheTrafficOfTheirProduct) {
  for (const double waves : {0.3, 1.0}) {
    // One block of each expert: weights once, and far more than the L2 holds.
    const ExpertLoad one = even_load(32, 32 * 16, 32);
    const Kernel kernel = product(one, Precision::kBf16);
    EXPECT_NEAR(play(plan_of(one, Precision::kBf16, waves)).memory_bytes,
                (kernel.read + kernel.written).base(), 0.01 * kernel.read.base());
    // In tiles of 32 rows a hot expert's nine further blocks read a tenth of its weights again,
    // each.
    const ExpertLoad hot = skewed_load(32, 32 * 16, 300);
    const double more = play(plan_of(hot, Precision::kBf16, waves)).memory_bytes -
                        play(plan_of(one, Precision::kBf16, waves)).memory_bytes;
    EXPECT_NEAR(more, 9 * 0.1 * 2 * kWidth * kHidden, 0.01 * more);
  }
}

TEST(GroupedGemm, ARaggedLoadTakesAtLeastAsLongAsAnEvenOneInTiles) {
  // 33 experts fill waves of 132 units. Where 32 leave units idle these take the further blocks,
  // and those of the other experts have fewer rows to load than in the even load.
  for (const double experts : {32.0, 33.0}) {
    const double slack = experts == 33 ? 1e-9 : 0.005;
    for (const Precision precision : kPrecisions) {
      for (const double rows : {16.0, 128.0, 1024.0}) {
        const double all = experts * rows;
        const double even = tiles_us(even_load(experts, all, experts), precision);
        for (const double hot : {1.5, 3.3, 8.1, 20.0})
          EXPECT_GE(tiles_us(skewed_load(experts, all, hot * rows), precision), even * (1 - slack))
              << experts << " " << rows << " " << hot;
      }
    }
  }
}

TEST(GroupedGemm, ResidualsTellProductsOfOtherShapesApart) {
  const AcceleratorConfig h200 = device("h200_sxm");
  const KernelFamily& family = tile_family(KernelClass::kGroupedGemm);
  const auto near =
      family.residual_point(product(even_load(8, 64, 8), Precision::kFp8), h200, nullptr);
  const auto far =
      family.residual_point(product(even_load(8, 1024, 8), Precision::kFp8), h200, nullptr);
  ASSERT_TRUE(near && far);
  EXPECT_DOUBLE_EQ(far->at[1] - near->at[1], 2);  // half the octaves of 128 over 8 rows
}

}  // namespace
}  // namespace orrery::grouped_gemm_test
