// SPDX-License-Identifier: Apache-2.0
// What the power cap does to products, with priors alone.
#include <gtest/gtest.h>

#include "sim/config/load.h"
#include "sim/machine/clock.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::power_state_test {
namespace {

AcceleratorConfig h200() {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return config::load<AcceleratorConfig>(library.locate("accelerators", "h200_sxm", ""), library,
                                         "accelerators");
}

/// TFLOP/s of a product of `size` cubed in bf16.
double rate(std::int64_t size, const AcceleratorConfig& device) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.m = kernel.n = kernel.k = size;
  const auto side = static_cast<double>(size);
  kernel.matrix_flops = Flops(2 * side * side * side);
  kernel.read = Bytes(4 * side * side);
  kernel.written = Bytes(2 * side * side);
  const KernelFamily& family = tile_family(KernelClass::kGemm);
  const std::vector<double> priors = family.priors(device, Precision::kBf16);
  return kernel.matrix_flops.base() / family.time(kernel, device, priors.data()).total_us / 1e6;
}

// The same product of 8192 cubed ran at 806 TFLOP/s in short runs and at 670 over seconds, with
// random operands. Priors of the energy are good to 15 % (a product at its achievable rate draws 85
// to 100 % of the cap), which moves the clock by 6 %, as P grows as its 2.5th power.
TEST(PowerState, TheBalanceTakesFromLongProductsWhatWasMeasuredOnAnH200) {
  EXPECT_NEAR(1 / product_slowdown(h200(), Precision::kBf16), 670.0 / 806, 0.06 * 670 / 806);
}

TEST(PowerState, WhatTheModelSaysOfAKernelIsTheSameInAllStates) {
  AcceleratorConfig burst = h200(), steady = h200();
  burst.power.state = PowerState::kBurst;
  steady.power.state = PowerState::kSteady;
  EXPECT_EQ(rate(8192, burst), rate(8192, steady));
  EXPECT_EQ(rate(8192, burst), rate(8192, h200()));
}

}  // namespace
}  // namespace orrery::power_state_test
