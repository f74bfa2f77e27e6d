// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <utility>

#include "models/kernels/device/roofline.h"
#include "models/kernels/device/tile_menu.h"
#include "models/kernels/tiles/gemm_choice.h"
#include "sim/config/diagnostics.h"
#include "sim/config/load.h"
#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::gemm_test {
namespace {

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
const std::vector<double> kH200 = {1.565, .838, .752, 1.328, .900, .218, 3146, 1.324, 1.051,
                                   1.139, .688, .002, 2.662, .115, .4,   1.2,  .05,   1};

double time_us(const Kernel& kernel,
               const AcceleratorConfig& accelerator = shipped_accelerator("h200_sxm")) {
  return tile_family(KernelClass::kGemm).time(kernel, accelerator, kH200.data()).total_us;
}

double time_us(std::int64_t m, std::int64_t n, std::int64_t k) { return time_us(product(m, n, k)); }

/// On an H200 with the L2 that the second implementation had when its figures were written down.
double reference_us(std::int64_t m, std::int64_t n, std::int64_t k) {
  AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  h200.cache->capacity.value = Bytes(50 * 1048576.0);
  return time_us(product(m, n, k), h200);
}

TEST(Gemm, AgreesWithASecondImplementation) {
  // Its L2 is 50 MB where ours is 50 MiB, and its parameters are rounded to three digits.
  EXPECT_NEAR(reference_us(1, 4096, 4096), 12.516, 0.02 * 12.5);
  EXPECT_NEAR(reference_us(16, 8192, 1024), 7.330, 0.02 * 7.33);
  EXPECT_NEAR(reference_us(64, 1024, 8192), 10.351, 0.02 * 10.4);
  EXPECT_NEAR(reference_us(257, 5120, 4096), 21.362, 0.02 * 21.4);
  EXPECT_NEAR(reference_us(1024, 4096, 4096), 46.635, 0.02 * 46.6);
  EXPECT_NEAR(reference_us(4096, 8192, 8192), 688.849, 0.02 * 689);
  EXPECT_NEAR(reference_us(32768, 512, 256), 20.272, 0.02 * 20.3);
}

/// The fastest tile and the mean over the menu, us.
std::pair<double, double> chosen_us(const Kernel& kernel, double registers_kib) {
  AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  h200.core->registers->value = Bytes(registers_kib * 1024);
  const GemmValues values{kH200.data()};
  const GemmJob job = gemm_job(kernel, h200, values);
  const GemmChoice choice = choose_tiles(job, tile_menu(kernel, h200, job.product.bytes), values);
  return {choice.best.time, choice.expected};
}

/// The library's choice is the mean over the tiles near the fastest, and a tile that joins them may
/// be slower than that mean.
TEST(Gemm, TheFastestTileOfALargerCoreIsNotSlowerAndTheChoiceHardly) {
  for (const std::int64_t m : {1, 64, 256, 700, 4096}) {
    for (const std::int64_t n : {256, 4096, 28672}) {
      for (const std::int64_t k : {512, 7168}) {
        auto before = chosen_us(product(m, n, k), 32);
        for (const double kib : {64, 128, 256, 512}) {
          const auto after = chosen_us(product(m, n, k), kib);
          EXPECT_LE(after.first, before.first) << m << ' ' << n << ' ' << k << ' ' << kib;
          EXPECT_LE(after.second, before.second * 1.05) << m << ' ' << n << ' ' << k << ' ' << kib;
          before = after;
        }
      }
    }
  }
}

TEST(Gemm, NeverBeatsTheMatrixPeak) {
  for (const std::int64_t size : {256, 1024, 4096, 16384}) {
    EXPECT_GT(time_us(size, size, size),
              (product(size, size, size).matrix_flops /
               matrix_peak(shipped_accelerator("h200_sxm"), Precision::kBf16))
                      .base() *
                  1e6);
  }
}

TEST(Gemm, WeightsBeyondTheCacheComeAtTheMemoryBandwidth) {
  // 16384 x 16384 bf16 weights: 537 MB at 4.8 TB/s x 0.838 = 133 us; one row of activations adds
  // next to nothing.
  EXPECT_NEAR(reference_us(1, 16384, 16384), 1.565 + 133.5 + 1.3, 6);
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
  const double all = time_us(batched);
  EXPECT_GT(all, 20 * one);
  EXPECT_LT(all, 32 * one);  // 31 launches and tails less
}

TEST(Gemm, DoublingTheSumOfALongProductDoublesItsTime) {
  // Beyond the milliseconds over which the power limit sets in.
  EXPECT_NEAR(reference_us(4096, 4096, 1 << 22) / reference_us(4096, 4096, 1 << 21), 2, 0.01);
}

TEST(Gemm, ASweepOverRowsHasStepsOfTheTile) {
  // 128 x 256 tiles of 2048 columns: 8 for every 128 rows, so that nothing but the waves changes
  // within a tile's rows, and one row more than 132 tiles hold takes another wave.
  const auto tiled = [](std::int64_t m) {
    Kernel kernel = product(m, 2048, 8192);
    kernel.tile = {128, 256};
    std::vector<double> whole = kH200;
    whole[11] = 1;  // a last wave counts as a full one
    return tile_family(KernelClass::kGemm)
        .time(kernel, shipped_accelerator("h200_sxm"), whole.data())
        .total_us;
  };
  EXPECT_NEAR(tiled(16 * 128), tiled(15 * 128 + 1), 0.01 * tiled(2048));
  EXPECT_GT(tiled(16 * 128 + 1), 1.8 * tiled(16 * 128));
}

TEST(Gemm, NeverBeatsTheRooflineOfOperandsThatTheCacheDoesNotHold) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  for (const std::int64_t m : {1, 100, 3000, 16384})
    for (const std::int64_t n : {8192, 28672})
      EXPECT_GT(time_us(m, n, 8192), textbook_roofline(product(m, n, 8192), h200)) << m << " " << n;
}

/// A device with one figure a tenth better at a time.
std::vector<AcceleratorConfig> better(const AcceleratorConfig& base) {
  std::vector<AcceleratorConfig> devices(4, base);
  devices[0].compute.units.value = devices[0].compute.units.value * 11 / 10;
  for (auto& [precision, rate] : devices[0].compute.matrix)
    rate.value *= 1.1;  // of each unit the same
  for (auto& [precision, rate] : devices[1].compute.matrix) rate.value *= 1.1;
  devices[2].memory.bandwidth.value *= 1.1;
  devices[3].cache->capacity.value *= 1.1;
  return devices;
}

TEST(Gemm, MoreOfAnythingNeverSlowsAProductOfAGivenTile) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  for (const AcceleratorConfig& other : better(h200)) {
    for (const std::int64_t m : {1, 64, 300, 2048, 5000}) {
      for (const std::int64_t n : {1024, 4096, 22016}) {
        Kernel kernel = product(m, n, 4096);
        EXPECT_LE(time_us(kernel, other), 1.01 * time_us(kernel, h200)) << m << " " << n;
        kernel.tile = {128, 128};
        kernel.batch = 16;  // more tiles than units: no split of the sum that units could change
        EXPECT_LE(time_us(kernel, other), time_us(kernel, h200) * (1 + 1e-12)) << m << " " << n;
      }
    }
  }
}

/// The same product with weights in another format, and the bytes of those.
Kernel stored(Kernel kernel, WeightFormat weights) {
  kernel.weights = weights;
  const auto m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n);
  const auto k = static_cast<double>(kernel.k);
  kernel.read = Bytes(2 * m * k + n * k * weight_bytes(kernel.precision, weights));
  return kernel;
}

constexpr WeightFormat kSparse{.bits = 0, .sparse = true};

TEST(Gemm, SparseWeightsAreNeverSlowerAndRunAtTwiceTheRateAtMost) {
  for (const std::int64_t m : {1, 16, 64, 500, 4096}) {
    for (const std::int64_t n : {256, 4096, 16384}) {
      const double dense = time_us(m, n, 4096),
                   sparse = time_us(stored(product(m, n, 4096), kSparse));
      EXPECT_LE(sparse, dense) << m << " " << n;
      EXPECT_GE(sparse, 0.5 * dense) << m << " " << n;
    }
  }
}

TEST(Gemm, SparseWeightsAreReadAsNineSixteenths) {
  const Kernel kernel = product(1, 32768, 32768);
  EXPECT_NEAR(time_us(stored(kernel, kSparse)) / time_us(kernel), 0.5625, 0.02);
}

TEST(Gemm, SparseWeightsNeverBeatTheSparsePeak) {
  const Kernel sparse = stored(product(8192, 8192, 8192), kSparse);
  EXPECT_GT(time_us(sparse), textbook_roofline(sparse, shipped_accelerator("h200_sxm")));
}

TEST(Gemm, ADeviceWithoutSparseUnitsOnlyReadsLess) {
  AcceleratorConfig plain = shipped_accelerator("h200_sxm");
  plain.compute.structured_sparsity.value = 1;
  const Kernel sparse = stored(product(8192, 8192, 8192), kSparse);
  EXPECT_NEAR(time_us(sparse, plain), time_us(8192, 8192, 8192), 0.03 * time_us(sparse, plain));
}

TEST(Gemm, OneRowOfFourBitWeightsTakesAQuarterInTheLimit) {
  const Kernel kernel = product(1, 32768, 32768);
  const double quarter = time_us(stored(kernel, {4, false})) / time_us(kernel);
  EXPECT_GT(quarter, 0.25);
  EXPECT_LT(quarter, 0.28);
  EXPECT_NEAR(time_us(stored(kernel, {8, false})) / time_us(kernel), 0.5, 0.02);
}

TEST(Gemm, WideningWeightsIsVectorWorkBesideTheMatrixInstructions) {
  AcceleratorConfig weak = shipped_accelerator("h200_sxm");
  weak.compute.vector.value *= 0.02;
  const Kernel wide = product(4096, 8192, 8192);
  EXPECT_EQ(time_us(wide, weak), time_us(wide));
  EXPECT_GT(time_us(stored(wide, {4, false}), weak), 1.2 * time_us(stored(wide, {4, false})));
}

TEST(Gemm, WeightsWiderThanTheOperandsAreRefused) {
  Kernel wide = product(64, 4096, 4096);
  wide.precision = Precision::kFp8;
  wide.weights.bits = 16;
  EXPECT_THROW(time_us(wide), config::ConfigError);
}

TEST(Gemm, EveryPrecisionOfTheDeviceHasATime) {
  const AcceleratorConfig b200 = shipped_accelerator("b200_sxm");
  double before = 0;
  // At its datasheet rate a narrower format is faster; one of the same width and rate is not.
  for (const Precision precision : {Precision::kNvfp4, Precision::kInt8, Precision::kFp16,
                                    Precision::kBf16, Precision::kTf32}) {
    Kernel kernel = product(8192, 8192, 8192);
    kernel.precision = precision;
    const auto priors = tile_family(KernelClass::kGemm).priors(b200, precision);
    const double now = tile_family(KernelClass::kGemm).time(kernel, b200, priors.data()).total_us;
    EXPECT_GE(now, before) << to_string(precision);
    before = now;
  }
}

TEST(Gemm, TransferFollowsTheDataSheets) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm"),
                          h100 = shipped_accelerator("h100_sxm");
  const auto same =
      tile_family(KernelClass::kGemm).transferred(kH200, h200, h200, Precision::kBf16);
  EXPECT_EQ(same, kH200);
  // The same units at the same clock; the epilogue has 3.35 of 4.8 TB/s.
  const auto moved =
      tile_family(KernelClass::kGemm).transferred(kH200, h200, h100, Precision::kBf16);
  EXPECT_NEAR(moved[7], kH200[7], 1e-9);
  EXPECT_NEAR(moved[9], kH200[9] * 4.8 / 3.35, 1e-9);
  EXPECT_EQ(moved[11], kH200[11]);
  // Another generation has other last waves, and twice the work of a unit and clock.
  const auto blackwell =
      tile_family(KernelClass::kGemm)
          .transferred(kH200, h200, shipped_accelerator("b200_sxm"), Precision::kBf16);
  EXPECT_EQ(blackwell[11], 1);
  EXPECT_LT(blackwell[7], 0.6 * kH200[7]);
}

}  // namespace
}  // namespace orrery::gemm_test
