// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::calibrated_transfer_test {
namespace {

AcceleratorConfig device(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<AcceleratorConfig>(library.locate("accelerators", name, ""), library,
                                         "accelerators");
}

/// An H200 whose products were fitted in bf16 and fp8: an epilogue of 1 us, the rest priors.
Calibration fitted() {
  const AcceleratorConfig h200 = device("h200_sxm");
  Calibration c;
  c.id = c.accelerator = "h200_sxm";
  c.device = h200;
  c.model = "tiles";
  for (const auto& [precision, rate] : h200.compute.matrix) c.rates.matrix[precision] = rate.value;
  c.rates.memory = h200.memory.bandwidth.value;
  c.rates.units = h200.compute.units.value;
  for (const Precision precision : {Precision::kBf16, Precision::kFp8}) {
    KernelFit fit;
    fit.table = "gemm";
    fit.precision = precision;
    fit.parameters["gemm.epilogue"] = {1, "us", 0.01, ParameterProvenance::kFitted};
    fit.shapes[KernelClass::kGemm] = {{1, 1}, {1, 65536}, {64, 65536}, {64, 65536}};
    fit.residuals = {{0, 40, 0, 0.05}};
    c.fits.push_back(fit);
  }
  return c;
}

Kernel product(Precision precision) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.precision = precision;
  kernel.m = kernel.n = 4096;
  kernel.k = 512;
  return kernel;
}

double time_us(const KernelCost& cost) { return to_seconds(cost.duration).base() * 1e6; }

TEST(CalibratedTransfer, TheFittedDeviceKeepsItsValues) {
  const AcceleratorConfig h200 = device("h200_sxm");
  const CalibratedModel model(fitted());
  std::vector<double> values = tile_family(KernelClass::kGemm).priors(h200, Precision::kBf16);
  values[parameter_index(tile_family(KernelClass::kGemm), "epilogue")] = 1;
  const KernelCost cost = model.cost(product(Precision::kBf16), h200);
  EXPECT_NEAR(
      time_us(cost),
      tile_family(KernelClass::kGemm).time(product(Precision::kBf16), h200, values.data()).total_us,
      1e-5);
  EXPECT_EQ(cost.provenance, Provenance::kCalibrated);
}

TEST(CalibratedTransfer, AnotherDeviceGetsThemByDataSheetAndIsExtrapolated) {
  const AcceleratorConfig h200 = device("h200_sxm"), h100 = device("h100_sxm");
  const CalibratedModel model(fitted());
  std::vector<double> values = tile_family(KernelClass::kGemm).priors(h200, Precision::kBf16);
  values[parameter_index(tile_family(KernelClass::kGemm), "epilogue")] = 1;
  values = tile_family(KernelClass::kGemm).transferred(values, h200, h100, Precision::kBf16);
  EXPECT_NEAR(values[parameter_index(tile_family(KernelClass::kGemm), "epilogue")], 4.8 / 3.35,
              1e-9);
  const KernelCost cost = model.cost(product(Precision::kBf16), h100);
  EXPECT_NEAR(
      time_us(cost),
      tile_family(KernelClass::kGemm).time(product(Precision::kBf16), h100, values.data()).total_us,
      1e-5);
  EXPECT_EQ(cost.provenance, Provenance::kExtrapolated);
}

TEST(CalibratedTransfer, OtherUnitsAtTheSameRatesAreExtrapolated) {
  AcceleratorConfig larger = device("h200_sxm");
  larger.compute.units.value = 144;
  EXPECT_EQ(CalibratedModel(fitted()).cost(product(Precision::kBf16), larger).provenance,
            Provenance::kExtrapolated);
}

TEST(CalibratedTransfer, FormatsOfOneWidthAndRateShareAFit) {
  const AcceleratorConfig h200 = device("h200_sxm");
  const CalibratedModel model(fitted());
  const KernelCost half = model.cost(product(Precision::kFp16), h200);
  EXPECT_EQ(half.duration, model.cost(product(Precision::kBf16), h200).duration);
  EXPECT_EQ(half.provenance, Provenance::kCalibrated);
  const KernelCost integers = model.cost(product(Precision::kInt8), h200);
  EXPECT_EQ(integers.duration, model.cost(product(Precision::kFp8), h200).duration);
  EXPECT_EQ(integers.provenance, Provenance::kExtrapolated);
  EXPECT_EQ(model.cost(product(Precision::kTf32), h200).provenance, Provenance::kAnalytic);
}

TEST(CalibratedTransfer, OtherPartsOfTheCacheOrNoAsynchronousCopiesAreExtrapolated) {
  const CalibratedModel model(fitted());
  AcceleratorConfig parted = device("h200_sxm"), apart = parted, narrow = parted, waiting = parted;
  parted.cache->partitions.value = 4;
  apart.cache->duplicated.value = false;
  narrow.cache->far_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(3e12)};
  waiting.core->async_copy.value = false;
  for (const AcceleratorConfig& changed : {parted, apart, narrow, waiting})
    EXPECT_EQ(model.cost(product(Precision::kBf16), changed).provenance, Provenance::kExtrapolated);
}

TEST(CalibratedTransfer, ABackwardPassOfAttentionIsExtrapolated) {
  Calibration calibration = fitted();
  KernelFit& fit = calibration.fits.front();
  fit.table = "attention_prefill";
  fit.parameters = {{"attention_prefill.tile", {2, "us", 0.01, ParameterProvenance::kFitted}}};
  fit.shapes = {{KernelClass::kAttentionPrefill, {{1, 512}, {1, 8192}, {1, 8192}, {64, 256}}}};
  const CalibratedModel model(calibration);
  Kernel kernel = product(Precision::kBf16);
  kernel.kind = KernelClass::kAttentionPrefill;
  kernel.batch = 32;
  kernel.k = 128;
  kernel.attention = {.sequences = 1, .kv_heads = 8};
  EXPECT_EQ(model.cost(kernel, device("h200_sxm")).provenance, Provenance::kCalibrated);
  kernel.attention.backward = true;
  EXPECT_EQ(model.cost(kernel, device("h200_sxm")).provenance, Provenance::kExtrapolated);
}

}  // namespace
}  // namespace orrery::calibrated_transfer_test
