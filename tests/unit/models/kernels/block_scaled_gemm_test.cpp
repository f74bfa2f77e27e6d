// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/block_scaled_gemm.h"

#include <gtest/gtest.h>

#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::block_scaled_gemm_test {
namespace {

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.precision = Precision::kFp8Block;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  return kernel;
}

/// Near a fit of the H200, in the order of GemmFamily::parameters().
const std::vector<double> kH200 = {1.6, .82, .6,  3.2, .78, .16, 3400, .83,  2.6,
                                   1.8, .83, .95, 1,   1,   .37, 1.23, .046, .94};

double time_us(const Kernel& kernel, const std::string& on = "h200_sxm") {
  return tile_family(KernelClass::kGemm)
      .time(kernel, shipped_accelerator(on), kH200.data())
      .total_us;
}

TEST(BlockScaledGemm, RunsOnInstructionsOf64RowsAlone) {
  EXPECT_TRUE(runs_block_scaled(product(1, 1, 1), shipped_accelerator("h100_sxm")));
  EXPECT_FALSE(runs_block_scaled(product(1, 1, 1), shipped_accelerator("b200_sxm")));
  EXPECT_FALSE(runs_block_scaled(product(1, 1, 1), shipped_accelerator("rubin_r200")));
  Kernel tensor = product(1, 1, 1);
  tensor.precision = Precision::kFp8;
  EXPECT_FALSE(runs_block_scaled(tensor, shipped_accelerator("h100_sxm")));
}

TEST(BlockScaledGemm, ColumnsMakeTheFewestWaves) {
  // 32 row tiles and 4096 columns on 132 units: 128 columns make 1024 tiles, 8 waves, and none of
  // fewer columns makes less than 8.
  EXPECT_EQ(block_scaled_tile(4096, 4096, 1, 128, 132).columns, 128);
  // One row tile and 1024 columns: 16 columns make 64 tiles, the most that one wave can have.
  EXPECT_EQ(block_scaled_tile(128, 1024, 1, 128, 132).columns, 16);
  // 3072 columns: 24 make 128 of 132 tiles, 16 would take a second wave.
  EXPECT_EQ(block_scaled_tile(128, 3072, 1, 128, 132).columns, 24);
}

TEST(BlockScaledGemm, RowsBeyondTheProductTakeTime) {
  // 129 rows are a second row of tiles of which 127 rows are empty.
  for (const std::int64_t rows : {64, 128, 256, 512})
    EXPECT_GT(time_us(product(rows + 1, 7168, 4096)), 1.03 * time_us(product(rows, 7168, 4096)))
        << rows;
}

TEST(BlockScaledGemm, NeverBeatsTheMatrixPeak) {
  const double peak =
      matrix_peak(shipped_accelerator("h200_sxm"), Precision::kFp8Block).base() / 1e6;
  for (const std::int64_t size : {256, 2048, 16384}) {
    const auto side = static_cast<double>(size);
    EXPECT_GT(time_us(product(size, size, size)), 2 * side * side * side / peak);
  }
}

TEST(BlockScaledGemm, DoublingALongSumDoublesTheTime) {
  EXPECT_NEAR(time_us(product(4096, 4096, 1 << 22)) / time_us(product(4096, 4096, 1 << 21)), 2,
              0.01);
}

TEST(BlockScaledGemm, ATileThatIsAskedForIsTaken) {
  Kernel kernel = product(4096, 4096, 4096);
  const double chosen = time_us(kernel);
  kernel.tile = {128, 128};
  EXPECT_EQ(time_us(kernel), chosen);
  kernel.tile = {64, 32};
  EXPECT_GT(time_us(kernel), 1.2 * chosen);
}

}  // namespace
}  // namespace orrery::block_scaled_gemm_test
