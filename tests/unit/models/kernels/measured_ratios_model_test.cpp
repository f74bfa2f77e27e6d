// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::measured_ratios_model_test {
namespace {

const AcceleratorConfig& h200() {
  static const config::Library library(ORRERY_SOURCE_DIR "/configs");
  static const auto accelerator = config::load<AcceleratorConfig>(
      library.locate("accelerators", "h200_sxm", ""), library, "accelerators");
  return accelerator;
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  const auto dm = static_cast<double>(m), dn = static_cast<double>(n), dk = static_cast<double>(k);
  kernel.matrix_flops = Flops(2 * dm * dn * dk);
  kernel.read = Bytes(2 * (dm * dk + dn * dk));
  kernel.written = Bytes(2 * dm * dn);
  return kernel;
}

/// The priors of an H200, and products around 256 x 4096 x 4096 that took `value` of them.
Calibration slower(double value = 1.2) {
  const AcceleratorConfig accelerator = h200();
  Calibration c;
  c.id = "test";
  c.model = "tiles";
  c.rates.memory = accelerator.memory.bandwidth.value;
  KernelFit fit;
  fit.table = "gemm";
  fit.parameters["gemm.launch"] = {1.6, "us", 0, ParameterProvenance::kFitted};
  fit.shapes[KernelClass::kGemm] = {{1, 1}, {1, 65536}, {64, 65536}, {64, 65536}};
  fit.residuals = {{0, 40, 0, 0.05}};
  std::vector<MeasuredRatio> ratios;
  for (const std::int64_t m : {64, 128, 256, 512})
    for (const std::int64_t n : {2048, 4096, 8192})
      for (const std::int64_t k : {2048, 4096, 8192}) {
        Kernel shape;
        shape.kind = KernelClass::kGemm;
        shape.m = m;
        shape.n = n;
        shape.k = k;
        ratios.push_back({shape, value});
      }
  fit.ratios = std::move(ratios);
  c.fits = {fit};
  return c;
}

Calibration without_ratios(Calibration calibration) {
  calibration.fits[0].ratios = {};
  return calibration;
}

double ratio(const Kernel& kernel) {
  const AcceleratorConfig accelerator = h200();
  const auto time = [&](const Calibration& c) {
    return static_cast<double>(CalibratedModel(c).cost(kernel, accelerator).duration);
  };
  return time(slower()) / time(without_ratios(slower()));
}

TEST(MeasuredRatios, MoveMeasuredShapesAndLeaveOthersAlone) {
  EXPECT_NEAR(ratio(product(256, 4096, 4096)), 1.2, 0.01);
  EXPECT_NEAR(ratio(product(200, 5120, 3072)), 1.2, 0.03);
  EXPECT_NEAR(ratio(product(65536, 65536, 65536)), 1, 0.01);
}

TEST(MeasuredRatios, FarFromThemAPredictionIsExtrapolated) {
  const CalibratedModel model(slower());
  EXPECT_EQ(model.cost(product(200, 5120, 3072), h200()).provenance, Provenance::kCalibrated);
  // Inside the range of each dimension, but nothing like it was measured.
  EXPECT_EQ(model.cost(product(32768, 64, 65536), h200()).provenance, Provenance::kExtrapolated);
  EXPECT_EQ(
      CalibratedModel(without_ratios(slower())).cost(product(32768, 64, 65536), h200()).provenance,
      Provenance::kCalibrated);
}

TEST(MeasuredRatios, NeverTakeAKernelBelowItsOperationsAtThePeak) {
  const Calibration faster = slower(0.25);
  const Kernel kernel = product(512, 8192, 8192);
  const double peak = (kernel.matrix_flops / matrix_peak(h200(), Precision::kBf16)).base() * 1e12;
  EXPECT_NEAR(static_cast<double>(CalibratedModel(faster).cost(kernel, h200()).duration), peak, 2);
}

TEST(MeasuredRatios, AKernelPricedAgainCostsTheSame) {
  const CalibratedModel model(slower());
  const AcceleratorConfig accelerator = h200();
  std::vector<KernelCost> first;
  for (std::int64_t m = 1; m <= 3000; ++m)  // more than a model keeps
    first.push_back(model.cost(product(m, 4096, 4096), accelerator));
  for (std::int64_t m = 3000; m >= 1; --m) {
    const KernelCost again = model.cost(product(m, 4096, 4096), accelerator);
    const KernelCost& before = first[static_cast<std::size_t>(m - 1)];
    EXPECT_EQ(again.duration, before.duration);
    EXPECT_EQ(again.launch, before.launch);
    EXPECT_EQ(again.bound, before.bound);
    EXPECT_EQ(again.provenance, before.provenance);
  }
}

TEST(MeasuredRatios, AnotherAcceleratorIsNotMistakenForTheLastOne) {
  // Whatever is kept between kernels: the device may change in place.
  const CalibratedModel model(slower());
  AcceleratorConfig accelerator = h200();
  const Kernel kernel = product(8192, 8192, 8192);
  const Picoseconds before = model.cost(kernel, accelerator).duration;
  accelerator.compute.matrix[Precision::kBf16].value =
      accelerator.compute.matrix[Precision::kBf16].value * 0.5;
  EXPECT_GT(model.cost(kernel, accelerator).duration, 1.5 * static_cast<double>(before));
  EXPECT_EQ(model.cost(kernel, accelerator).duration,
            CalibratedModel(slower()).cost(kernel, accelerator).duration);
  EXPECT_EQ(model.cost(kernel, h200()).duration, before);
}

TEST(MeasuredRatios, PricesOfADeviceHoldWhateverOthersAreAskedBetween) {
  const CalibratedModel model(slower());
  const AcceleratorConfig whole = h200();
  const Kernel kernel = product(512, 4096, 4096), later = product(4096, 4096, 4096);
  const auto prices = model.on(whole);
  const Picoseconds before = prices->cost(kernel).duration;
  for (int units = 100; units < 116; ++units) {  // more devices than a model keeps
    AcceleratorConfig fewer = whole;
    fewer.compute.units.value = units;
    model.on(fewer)->cost(kernel);
  }
  EXPECT_EQ(prices->cost(kernel).duration, before);
  EXPECT_EQ(prices->cost(later).duration, CalibratedModel(slower()).cost(later, whole).duration);
}

TEST(MeasuredRatios, OfDenseProductsTellNothingAboutPackedWeightsAndOtherTiles) {
  const CalibratedModel with(slower()), without(without_ratios(slower()));
  Kernel packed = product(64, 4096, 4096), tiled = packed, clustered = packed;
  packed.weights.bits = 4;
  tiled.tile = {64, 128};
  clustered.cluster = 4;
  for (const Kernel& kernel : {packed, tiled, clustered}) {
    EXPECT_EQ(with.cost(kernel, h200()).duration, without.cost(kernel, h200()).duration);
    EXPECT_EQ(with.cost(kernel, h200()).provenance, Provenance::kExtrapolated);
  }
}

TEST(ResidualPoint, OfAttentionKeepsCodePathsApart) {
  Kernel kernel;
  kernel.kind = KernelClass::kAttentionPrefill;
  kernel.batch = 64;
  kernel.m = kernel.n = 1024;
  kernel.k = 128;
  kernel.attention = {.sequences = 2, .kv_heads = 8};
  const AcceleratorConfig accelerator = h200();
  const auto part = [&](const Kernel& k) {
    return tile_family(KernelClass::kAttentionPrefill)
        .residual_point(k, accelerator, nullptr)
        ->part;
  };
  Kernel windowed = kernel, wider = kernel, unwindowed = kernel;
  windowed.attention.window = 128;
  wider.k = 192;
  unwindowed.attention.window = 8192;  // beyond the prompt: no window
  EXPECT_NE(part(windowed), part(kernel));
  EXPECT_NE(part(wider), part(kernel));
  EXPECT_EQ(part(unwindowed), part(kernel));
  kernel.attention.backward = true;  // no table has one
  EXPECT_FALSE(
      tile_family(KernelClass::kAttentionPrefill).residual_point(kernel, accelerator, nullptr));
}

}  // namespace
}  // namespace orrery::measured_ratios_model_test
