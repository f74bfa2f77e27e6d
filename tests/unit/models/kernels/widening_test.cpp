// SPDX-License-Identifier: Apache-2.0
// What narrow weights take to become operands where rates are all that is known.
#include "models/kernels/device/unit_work.h"

#include <gtest/gtest.h>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"

namespace orrery::widening_test {
namespace {

AcceleratorConfig library_device(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<AcceleratorConfig>(library.locate("accelerators", name, ""), library,
                                         "accelerators");
}

Kernel row_product(std::int64_t m, std::int64_t bits) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.precision = Precision::kFp16;
  kernel.m = m;
  kernel.n = kernel.k = 4096;
  kernel.weights.bits = bits;
  kernel.matrix_flops = Flops(2.0 * static_cast<double>(m) * 4096 * 4096);
  kernel.read = Bytes(4096.0 * 4096 * static_cast<double>(bits > 0 ? bits : 16) / 8);
  return kernel;
}

// 16.8 M conversions, of which 32 cores do 32 each in a clock of 1296 MHz: 12.6 us, where the bits
// of the weights take 21 us of 400 GB/s. The mask takes a lane a clock, a quarter of that.
TEST(Widening, TakesConversionsWhereProductsRunInTheLanes) {
  const AcceleratorConfig apple = library_device("apple_m1_max");
  EXPECT_NEAR(widening_of(row_product(1, 4), apple).us, 4096 * 4096 / (32 * 32 * 1296.0), 0.02);
  EXPECT_EQ(widening_of(row_product(1, 0), apple).us, 0);
  EXPECT_EQ(widening_of(row_product(1, 16), apple).us, 0);
}

// A mask for each weight: 16.8 M of 128 lanes of 82 units at 1695 MHz.
TEST(Widening, TakesMasksAloneWhereThereAreMatrixUnits) {
  const AcceleratorConfig card = library_device("rtx_3090");
  EXPECT_NEAR(widening_of(row_product(1, 4), card).us, 4096 * 4096 / (82 * 128 * 1695.0), 0.01);
}

TEST(Widening, IsDoneOnceForEachBlockOfRows) {
  const AcceleratorConfig apple = library_device("apple_m1_max");
  const double one = widening_of(row_product(1, 4), apple).us;
  EXPECT_DOUBLE_EQ(widening_of(row_product(32, 4), apple).us, one);
  EXPECT_DOUBLE_EQ(widening_of(row_product(33, 4), apple).us, 2 * one);
  EXPECT_DOUBLE_EQ(widening_of(row_product(512, 4), apple).us, 16 * one);
  EXPECT_FALSE(widening_of(row_product(1, 4), apple).apart);
  EXPECT_TRUE(widening_of(row_product(512, 4), apple).apart);
  EXPECT_FALSE(widening_of(row_product(512, 4), library_device("rtx_3090")).apart);
}

// Half of the cores: the memory brings weights as fast as before.
TEST(Widening, MakesProductsOfNarrowWeightsSlowerOnFewerCores) {
  AcceleratorConfig apple = library_device("apple_m1_max");
  const CalibratedModel model;
  const auto us = [&] { return to_seconds(model.cost(row_product(1, 4), apple).duration).base(); };
  const double whole = us();
  apple.compute.vector.value = apple.compute.vector.value / 2;
  apple.compute.special->value = apple.compute.special->value / 2;
  for (auto& [precision, rate] : apple.compute.matrix) rate.value = rate.value / 2;
  EXPECT_GT(us(), 1.2 * whole);
}

}  // namespace
}  // namespace orrery::widening_test
