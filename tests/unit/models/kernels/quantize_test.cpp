// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "models/kernels/device/family.h"
#include "models/kernels/device/roofline.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::quantize_test {
namespace {

/// bf16 to fp8.
Kernel quantisation(std::int64_t rows, std::int64_t columns) {
  Kernel kernel;
  kernel.kind = KernelClass::kQuantize;
  kernel.precision = Precision::kFp8;
  kernel.m = rows;
  kernel.n = columns;
  const double elements = static_cast<double>(rows) * static_cast<double>(columns);
  kernel.read = Bytes(2 * elements);
  kernel.written = Bytes(elements);
  return kernel;
}

/// 10 us, a quarter of the bandwidth, 0.1 us for 1000 elements of a row, 512 at least, p = 2.
const std::vector<double> kValues = {10, 0.25, 0.1, 512, 2};

double time_us(std::int64_t rows, std::int64_t columns) {
  return tile_family(KernelClass::kQuantize)
      .time(quantisation(rows, columns), shipped_accelerator("h200_sxm"), kValues.data())
      .total_us;
}

TEST(Quantize, IsTheModelOfTiles) {
  EXPECT_TRUE(tile_families().contains(KernelClass::kQuantize));
  EXPECT_EQ(family_of("tiles", KernelClass::kQuantize).group, "quantize");
}

TEST(Quantize, OneRowTakesTheFixedPart) { EXPECT_NEAR(time_us(1, 128), 10, 0.01); }

TEST(Quantize, ManyRowsStreamAtTheirShareOfTheBandwidth) {
  // 3 bytes of 2^32 elements at 1.2 TB/s.
  EXPECT_NEAR(time_us(1 << 18, 1 << 14), 3 * 4294967296.0 / 1.2e6, 10);
}

TEST(Quantize, ShortRowsCountAsLongerOnes) {
  EXPECT_NEAR(time_us(1 << 20, 128), time_us(1 << 20, 512), 1e-2 * time_us(1 << 20, 512));
  EXPECT_NEAR(time_us(1 << 20, 1024), 2 * time_us(1 << 20, 512), 0.02 * time_us(1 << 20, 1024));
}

TEST(Quantize, NeverBeatsTheRoofline) {
  for (const std::int64_t rows : {1, 100, 10000, 1000000})
    EXPECT_GT(time_us(rows, 4096),
              textbook_roofline(quantisation(rows, 4096), shipped_accelerator("h200_sxm")));
}

TEST(Quantize, TheFixedPartGrowsWithTheUnitsOfAnotherDevice) {
  const auto moved = tile_family(KernelClass::kQuantize)
                         .transferred(kValues, shipped_accelerator("h200_sxm"),
                                      shipped_accelerator("b200_sxm"), Precision::kFp8);
  EXPECT_NEAR(moved[0], 10 * 148 / 132.0, 1e-9);
}

TEST(Quantize, DevicesWithOneL2QuantiseAtOneRate) {
  // A quarter of 4.8 TB/s is more of 3.35 TB/s.
  const auto moved = tile_family(KernelClass::kQuantize)
                         .transferred(kValues, shipped_accelerator("h200_sxm"),
                                      shipped_accelerator("h100_sxm"), Precision::kFp8);
  EXPECT_NEAR(moved[1], 0.25 * 4.8 / 3.35, 1e-9);
  EXPECT_EQ(moved[0], kValues[0]);
}

}  // namespace
}  // namespace orrery::quantize_test
