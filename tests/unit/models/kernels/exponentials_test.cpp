// SPDX-License-Identifier: Apache-2.0
// What compute.special does to attention, by hand.
#include <gtest/gtest.h>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/device/unit_work.h"
#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::exponentials_test {
namespace {

constexpr std::int64_t kHeads = 64, kQuery = 32768;

/// A prompt whose time is that of full steps.
Kernel prompt(KernelClass kind, std::int64_t dim) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.batch = kHeads;
  kernel.m = kernel.n = kQuery;
  kernel.k = dim;
  kernel.attention = {1, kHeads};
  return kernel;
}

/// A B200, whose exponentials are those that attention was fitted with, 16 a clock and SM.
AcceleratorConfig b200() {
  AcceleratorConfig device = shipped_accelerator("b200_sxm");
  device.compute.special->value = FlopsPerSecond(16.0 * 148 * 1856e6);
  return device;
}

AcceleratorConfig with_exponentials(double factor) {
  AcceleratorConfig device = b200();
  device.compute.special->value *= factor;
  return device;
}

/// Values with nothing but steps, fitted on a B200, on a device with more or fewer exponentials.
double time_us(const KernelFamily& family, const Kernel& kernel, std::vector<double> values,
               double factor) {
  values = family.transferred(values, b200(), with_exponentials(factor), Precision::kBf16);
  return family.time(kernel, with_exponentials(factor), values.data()).total_us;
}

double prefill_us(double factor) {
  const KernelFamily& family = tile_family(KernelClass::kAttentionPrefill);
  std::vector<double> values = family.priors(b200(), Precision::kBf16);
  const auto set = [&](const char* name, double value) {
    values[parameter_index(family, name)] = value;
  };
  for (const char* other :
       {"launch", "launch_other", "rotate_query", "rotate_key", "tile", "short_tile",
        "short_tile_dim", "load_loss", "matrix_loss", "power_loss", "ramp"})
    set(other, 1e-6);
  set("tile_bandwidth", 1e6);
  set("matrix_step", 0.3);
  set("exp_step", 1.18);
  return time_us(family, prompt(KernelClass::kAttentionPrefill, 128), values, factor);
}

// A step of 256 x 128: products 4 x 256 x 128 x 128 FLOP over 2,250 TFLOP/s / 148 = 1.1036 us,
// exponentials 256 x 128 / (16 x 1856 MHz) = 1.1034 us. Fitted 0.3 and 1.18 of these: 1.633 us.
// Twice as many exponentials leave 0.982 us, less than the products take: 1.06 x 1.1036 = 1.170 us.
TEST(Exponentials, TwiceAsManyMakePrefillFasterUntilTheProductsLimit) {
  EXPECT_NEAR(prefill_us(1) / prefill_us(2), 1.633 / 1.170, 1e-3 * 1.4);
  EXPECT_EQ(prefill_us(2), prefill_us(4));
}

TEST(Exponentials, HalfAsManyMakeThemTakeTwiceAsLong) {
  EXPECT_NEAR(prefill_us(0.5) / prefill_us(1), (0.331 + 2 * 1.302) / 1.633, 2e-3 * 1.8);
}

// A step of 256 x 64: products 2 x 256 x 64 x 320 / 15.203 TFLOP/s = 0.6898 us, exponentials
// 256 x 64 / (16 x 1856 MHz) = 0.5517 us. Fitted 1.23 of the products: 0.8485 us, 0.1173 us above
// 1.06 of them; half of that is saved.
TEST(Exponentials, OfLatentAttentionOnlyWhatProductsDoNotHideIsSaved) {
  const KernelFamily& family = tile_family(KernelClass::kMlaPrefill);
  std::vector<double> values = family.priors(b200(), Precision::kBf16);
  const auto set = [&](const char* name, double value) {
    values[parameter_index(family, name)] = value;
  };
  for (const char* other :
       {"launch", "query_bytes", "latent_bytes", "tile", "short_tile", "power_loss", "ramp"})
    set(other, 1e-6);
  set("tile_bandwidth", 1e6);
  set("step", 1.23);
  const auto latent_us = [&](double factor) {
    return time_us(family, prompt(KernelClass::kMlaPrefill, 192), values, factor);
  };
  EXPECT_NEAR(latent_us(1) / latent_us(2), 0.8485 / (0.8485 - 0.1173 / 2), 2e-3);
  EXPECT_GT(latent_us(0.5), latent_us(1));
  EXPECT_NEAR(latent_us(0.1) / latent_us(1), 5.517 / 0.8485, 0.02 * 6.5);
}

TEST(Exponentials, TheFittedDeviceKeepsItsTimesWhateverItsFileSays) {
  const KernelFamily& family = tile_family(KernelClass::kAttentionPrefill);
  const std::vector<double> values = family.priors(b200(), Precision::kBf16);
  const AcceleratorConfig other = with_exponentials(1.06);  // counted at the boost clock
  EXPECT_EQ(family.transferred(values, other, other, Precision::kBf16), values);
}

// The file of Blackwell Ultra has 32 results a clock and SM.
TEST(Exponentials, BlackwellUltraHasTwiceThoseOfBlackwell) {
  EXPECT_NEAR(exponentials_over(shipped_accelerator("b300_sxm"), shipped_accelerator("b200_sxm")),
              2, 0.02);
  EXPECT_NEAR(exponentials_over(shipped_accelerator("gb300"), shipped_accelerator("gb200")), 2,
              0.02);
}

// Eight multiply-adds each: 128 lanes x 2 / 16 is 16 a clock.
TEST(Exponentials, WithoutARateOfTheirOwnTheyRunOnTheLanes) {
  const AcceleratorConfig rated = shipped_accelerator("h100_sxm");
  AcceleratorConfig device = rated;
  device.compute.special.reset();
  EXPECT_NEAR(exponentials_over(device, rated), 1, 0.01);
}

// 64 x 32 heads x 4,096 pairs over 3.9 G/s, at the 0.7 that priors expect of the lanes.
TEST(Exponentials, NewTokensWaitForThemToo) {
  Kernel kernel;
  kernel.kind = KernelClass::kAttentionDecode;
  kernel.batch = 64 * 32;
  kernel.m = 1;
  kernel.n = 4096;
  kernel.k = 128;
  kernel.attention = {64, 8};
  kernel.exponentials = Flops(64.0 * 32 * 4096);
  AcceleratorConfig device = shipped_accelerator("h100_sxm");
  device.compute.special->value = FlopsPerSecond(3.9e9);
  device.kernel.vector_efficiency.value = 0.7;
  EXPECT_NEAR(to_seconds(CalibratedModel().cost(kernel, device).duration).base(), 2.151e-3 / 0.7,
              0.01 * 3.1e-3);
}

}  // namespace
}  // namespace orrery::exponentials_test
