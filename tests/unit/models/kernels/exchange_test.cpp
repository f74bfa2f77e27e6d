// SPDX-License-Identifier: Apache-2.0
// What units with a part of the memory each send each other for a product, by hand.
#include "models/kernels/device/exchange.h"

#include <gtest/gtest.h>

namespace orrery::exchange_test {
namespace {

/// In 16 bits, with the bytes of its operands read once.
Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.precision = Precision::kFp16;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.read = Bytes(2.0 * static_cast<double>(m * k + k * n));
  return kernel;
}

// One unit has all of it, but gets its inputs from where they were made.
TEST(Exchange, OfOneUnitIsItsInputs) {
  EXPECT_EQ(exchanged_bytes(product(64, 64, 64), 1), Bytes(2 * 64 * 64));
}

// A row of inputs: weights stay where they are, whatever cut; columns alone need the row on each of
// 16 units (16 x 8,192 B), inputs alone sum 15 partial rows of 4,096 x 4 B up. Four by four is
// least: 4 x 8,192 B and 3 x 16,384 B.
TEST(Exchange, LeavesWeightsThatOneUnitNeedsWhereTheyAre) {
  EXPECT_EQ(exchanged_bytes(product(1, 4096, 4096), 16), Bytes(4 * 8192 + 3 * 16384));
}

// Inputs that dwarf all else are not sent twice: eight units take rows each, and the weights.
TEST(Exchange, SendsWeightsToUnitsThatShareThem) {
  EXPECT_EQ(exchanged_bytes(product(1 << 20, 16, 64), 8),
            Bytes(2.0 * (1 << 20) * 64 + 8 * 2 * 16 * 64));
}

TEST(Exchange, CountsPositionsThatFiltersShareOnce) {
  Kernel filter = product(4096, 64, 576);
  filter.kind = KernelClass::kConvolution;
  filter.read = Bytes(2.0 * (4096 * 64 + 576 * 64));
  EXPECT_EQ(exchanged_bytes(filter, 1), Bytes(2.0 * 4096 * 64));
}

TEST(Exchange, GrowsWithTheUnitsAndWithTheProduct) {
  double before = 0;
  for (const int units : {1, 4, 16, 64, 256, 1024}) {
    const double bytes = exchanged_bytes(product(4096, 4096, 4096), units).base();
    EXPECT_GE(bytes, before);
    EXPECT_LE(bytes, exchanged_bytes(product(4096, 8192, 4096), units).base());
    before = bytes;
  }
}

TEST(Exchange, OfAnElementwiseKernelIsNone) {
  Kernel sum;
  sum.read = Bytes(1e6);
  EXPECT_EQ(exchanged_bytes(sum, 1472), Bytes());
}

}  // namespace
}  // namespace orrery::exchange_test
