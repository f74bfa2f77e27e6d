// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/grouped_gemm.h"

#include <gtest/gtest.h>

#include "sim/config/load.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
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
  const GroupedGemmFamily family;
  const std::vector<double> values = family.priors(h200, precision);
  return family.time(product(load, precision), h200, values.data()).total_us;
}

/// Of the same rows and active experts, one of them with `hot` rows.
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

TEST(GroupedGemm, KernelsWithoutALoadAreEven) {
  Kernel kernel = product(even_load(8, 1024, 8), Precision::kBf16);
  const AcceleratorConfig h200 = device("h200_sxm");
  const GroupedGemmFamily family;
  const std::vector<double> values = family.priors(h200, Precision::kBf16);
  const double with = family.time(kernel, h200, values.data()).total_us;
  kernel.load = {};
  EXPECT_DOUBLE_EQ(family.time(kernel, h200, values.data()).total_us, with);
}

TEST(GroupedGemm, ResidualsTellProductsOfOtherShapesApart) {
  const AcceleratorConfig h200 = device("h200_sxm");
  const GroupedGemmFamily family;
  const auto near = family.residual_point(product(even_load(8, 64, 8), Precision::kFp8), h200);
  const auto far = family.residual_point(product(even_load(8, 1024, 8), Precision::kFp8), h200);
  ASSERT_TRUE(near && far);
  EXPECT_DOUBLE_EQ(far->at[1] - near->at[1], 2);  // half the octaves of 128 over 8 rows
}

}  // namespace
}  // namespace orrery
