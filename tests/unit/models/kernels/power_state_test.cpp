// SPDX-License-Identifier: Apache-2.0
// What the power cap does to products, with priors alone.
#include <gtest/gtest.h>

#include "models/kernels/tiles/gemm.h"
#include "sim/config/load.h"

namespace orrery {
namespace {

AcceleratorConfig h200(PowerState state) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  auto a = config::load<AcceleratorConfig>(library.locate("accelerators", "h200_sxm", ""), library,
                                           "accelerators");
  a.power.state = state;
  return a;
}

/// TFLOP/s of a product of `size` cubed in bf16.
double rate(std::int64_t size, PowerState state) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.m = kernel.n = kernel.k = size;
  const auto side = static_cast<double>(size);
  kernel.matrix_flops = Flops(2 * side * side * side);
  kernel.read = Bytes(4 * side * side);
  kernel.written = Bytes(2 * side * side);
  const AcceleratorConfig device = h200(state);
  const GemmFamily family;
  const std::vector<double> priors = family.priors(device, Precision::kBf16);
  return kernel.matrix_flops.base() / family.time(kernel, device, priors.data()).total_us / 1e6;
}

// The same product of 8192 cubed ran at 806 TFLOP/s in short runs and at 670 over seconds, with
// random operands. Priors of the energy are good to 15 % (a product at its achievable rate draws 85
// to 100 % of the cap), which moves the clock by 6 %, as P grows as its 2.5th power.
TEST(PowerState, SteadyOverShortRunsIsAsMeasuredOnAnH200) {
  EXPECT_NEAR(rate(8192, PowerState::kSteady) / rate(8192, PowerState::kBoost), 670.0 / 806,
              0.06 * 670 / 806);
}

TEST(PowerState, ARunIsBetweenBoostAndSteady) {
  for (const std::int64_t size : {1024, 4096, 16384}) {
    const double boost = rate(size, PowerState::kBoost);
    const double usual = rate(size, PowerState::kAutomatic);
    const double steady = rate(size, PowerState::kSteady);
    EXPECT_GE(boost, usual) << size;
    EXPECT_GE(usual, steady) << size;
  }
}

TEST(PowerState, EvenAnIdleDeviceThrottlesWhenAKernelOutlastsPowerManagement) {
  // 32768 cubed takes 70 ms, 8192 cubed 1.1 ms; the response is 20 ms.
  const double brief = rate(8192, PowerState::kBoost), lengthy = rate(32768, PowerState::kBoost);
  EXPECT_LT(lengthy, 0.95 * brief);
  EXPECT_GT(lengthy, rate(32768, PowerState::kSteady));
}

}  // namespace
}  // namespace orrery
