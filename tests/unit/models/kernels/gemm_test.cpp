// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/gemm.h"

#include <gtest/gtest.h>

#include "sim/config/load.h"
#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

AcceleratorConfig device(const std::string& name) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return config::load<AcceleratorConfig>(library.locate("accelerators", name, ""), library,
                                         "accelerators");
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.batch = 1;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  const auto dm = static_cast<double>(m), dn = static_cast<double>(n), dk = static_cast<double>(k);
  kernel.matrix_flops = Flops(2 * dm * dn * dk);
  kernel.read = Bytes(2 * (dm * dk + dn * dk));
  kernel.written = Bytes(2 * dm * dn);
  return kernel;
}

/// Values that a separate implementation found for bf16 on an H200, in the order of parameters().
const std::vector<double> kH200 = {1.565, .838,  .752,  1.328, .900, .218,  3146,
                                   1.324, 1.051, 1.139, .688,  .002, 2.662, .115};

double time_us(std::int64_t m, std::int64_t n, std::int64_t k) {
  return GemmFamily().time(product(m, n, k), device("h200_sxm"), kH200.data()).total_us;
}

TEST(Gemm, AgreesWithASecondImplementation) {
  // Its L2 is 50 MB where ours is 50 MiB, and its parameters are rounded to three digits.
  EXPECT_NEAR(time_us(1, 4096, 4096), 12.516, 0.02 * 12.5);
  EXPECT_NEAR(time_us(16, 8192, 1024), 7.330, 0.02 * 7.33);
  EXPECT_NEAR(time_us(64, 1024, 8192), 10.351, 0.02 * 10.4);
  EXPECT_NEAR(time_us(257, 5120, 4096), 21.362, 0.02 * 21.4);
  EXPECT_NEAR(time_us(1024, 4096, 4096), 46.635, 0.02 * 46.6);
  EXPECT_NEAR(time_us(4096, 8192, 8192), 688.849, 0.02 * 689);
  EXPECT_NEAR(time_us(32768, 512, 256), 20.272, 0.02 * 20.3);
}

TEST(Gemm, NeverBeatsTheMatrixPeak) {
  for (const std::int64_t size : {256, 1024, 4096, 16384}) {
    EXPECT_GT(time_us(size, size, size), (product(size, size, size).matrix_flops /
                                          matrix_peak(device("h200_sxm"), Precision::kBf16))
                                                 .base() *
                                             1e6);
  }
}

TEST(Gemm, WeightsBeyondTheCacheComeAtTheMemoryBandwidth) {
  // 16384 x 16384 bf16 weights: 537 MB at 4.8 TB/s x 0.838 = 133 us; one row of activations adds
  // next to nothing.
  EXPECT_NEAR(time_us(1, 16384, 16384), 1.565 + 133.5 + 1.3, 6);
}

TEST(Gemm, MoreRowsNeverTakeMuchLess) {
  double before = 0;
  for (std::int64_t m = 1; m <= 8192; m += m < 64 ? 1 : 61) {
    const double now = time_us(m, 8192, 4096);
    EXPECT_GE(now, 0.97 * before) << m;  // a better tile may fit the larger product
    before = now;
  }
}

TEST(Gemm, LongProductsLoseClockToThePowerLimit) {
  // The same tiles twenty times over take more than twenty times as long.
  EXPECT_GT(time_us(16384, 16384, 20 * 8192), 20 * time_us(16384, 16384, 8192));
}

TEST(Gemm, ABatchIsAsManyProducts) {
  Kernel batched = product(2048, 2048, 2048);
  batched.batch = 32;
  const double one = time_us(2048, 2048, 2048);
  const double all = GemmFamily().time(batched, device("h200_sxm"), kH200.data()).total_us;
  EXPECT_GT(all, 20 * one);
  EXPECT_LT(all, 32 * one);  // 31 launches and tails less
}

}  // namespace
}  // namespace orrery
