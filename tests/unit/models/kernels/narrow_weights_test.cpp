// SPDX-License-Identifier: Apache-2.0
// Products of weights that are stored narrower than they are computed in.
#include <gtest/gtest.h>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::narrow_weights_test {
namespace {

constexpr std::int64_t kExperts = 64, kWide = 4096;

AcceleratorConfig narrow_device(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<AcceleratorConfig>(library.locate("accelerators", name, ""), library,
                                         "accelerators");
}

/// One row for each expert: a product that reads weights and little else.
Kernel streaming_product(Precision precision, WeightFormat weights = {}) {
  Kernel kernel;
  kernel.kind = KernelClass::kGroupedGemm;
  kernel.precision = precision;
  kernel.batch = kExperts;
  kernel.m = 1;
  kernel.n = kernel.k = kWide;
  kernel.load = even_load(kExperts, kExperts, kExperts);
  kernel.weights = weights;
  const double elements = static_cast<double>(kExperts * kWide * kWide);
  kernel.matrix_flops = Flops(2 * elements);
  kernel.read = Bytes(elements * weight_bytes(precision, weights) +
                      kExperts * kWide * element_bytes(precision));
  kernel.written = Bytes(kExperts * kWide * 2.0);
  return kernel;
}

double prior_us(const std::string& name, const Kernel& kernel) {
  const AcceleratorConfig device = narrow_device(name);
  const KernelFamily& family = tile_family(KernelClass::kGroupedGemm);
  const auto values = family.priors(device, kernel.precision);
  return family.time(kernel, device, values.data()).total_us;
}

/// A B200 whose products of 4-bit weights were fitted in fp8 and those of wide ones in bf16.
Calibration fitted_apart(double narrow_launch, double wide_launch) {
  Calibration c;
  c.device = narrow_device("b200_sxm");
  c.id = c.accelerator = "b200_sxm";
  c.model = "tiles";
  for (const auto& [precision, rate] : c.device->compute.matrix)
    c.rates.matrix[precision] = rate.value;
  c.rates.memory = c.device->memory.bandwidth.value;
  c.rates.units = c.device->compute.units.value;
  const auto add = [&](const std::string& group, Precision precision, double launch) {
    KernelFit fit;
    fit.table = group;
    fit.precision = precision;
    fit.parameters[group + ".launch"] = {launch, "us", 0.01, ParameterProvenance::kFitted};
    fit.shapes[KernelClass::kGroupedGemm] = {{1, 1024}, {1, 65536}, {64, 65536}, {64, 65536}};
    fit.residuals = {{0, 40, 0, 0.05}};
    c.fits.push_back(fit);
  };
  add("grouped_gemm", Precision::kBf16, wide_launch);
  add("grouped_gemm_w4", Precision::kFp8, narrow_launch);
  return c;
}

double launch_us(const KernelCost& cost) { return to_seconds(cost.launch).base() * 1e6; }

TEST(NarrowWeights, ComeIntoTheUnitsAsTheyAreStored) {
  // 64 x 4096 x 4096 elements: 280 us of 7.7 TB/s in bf16, 70 us of it in four bits. Loads of wide
  // operands would take 22 TB/s x 4 / 2 B of the units' 22 TB/s for the latter, as long as the
  // memory.
  const double wide = prior_us("b200_sxm", streaming_product(Precision::kBf16));
  const double narrow = prior_us("b200_sxm", streaming_product(Precision::kBf16, {.bits = 4}));
  EXPECT_GT(wide, 279);
  EXPECT_GT(narrow, 69);
  EXPECT_LT(narrow / wide, 0.45);
}

TEST(NarrowWeights, HaveAFitOfTheirOwn) {
  const CalibratedModel model(fitted_apart(9, 3));
  const AcceleratorConfig b200 = narrow_device("b200_sxm");
  const KernelCost narrow = model.cost(streaming_product(Precision::kFp8, {.bits = 4}), b200);
  EXPECT_NEAR(launch_us(narrow), 9, 1e-6);
  EXPECT_EQ(narrow.provenance, Provenance::kCalibrated);
  EXPECT_NEAR(launch_us(model.cost(streaming_product(Precision::kBf16), b200)), 3, 1e-6);
}

TEST(NarrowWeights, WithoutOneTheyHaveThatOfWideWeightsAndAreExtrapolated) {
  const CalibratedModel model(fitted_apart(9, 3));
  const AcceleratorConfig b200 = narrow_device("b200_sxm");
  const KernelCost cost = model.cost(streaming_product(Precision::kBf16, {.bits = 4}), b200);
  EXPECT_NEAR(launch_us(cost), 3, 1e-6);
  EXPECT_EQ(cost.provenance, Provenance::kExtrapolated);
}

TEST(NarrowWeights, MarlinWidensThemInTheKernelsOfWideOnes) {
  const CalibratedModel model(fitted_apart(9, 3));
  const AcceleratorConfig b200 = narrow_device("b200_sxm");
  const WeightFormat marlin = {.bits = 4, .sparse = false, .marlin = true};
  const KernelCost cost = model.cost(streaming_product(Precision::kBf16, marlin), b200);
  EXPECT_NEAR(launch_us(cost), 3, 1e-6);
  EXPECT_EQ(cost.provenance, Provenance::kExtrapolated);  // nobody timed them here
}

TEST(NarrowWeights, FormatsThatNoTableHasTakeTheNearestFit) {
  const CalibratedModel model(fitted_apart(9, 3));
  const AcceleratorConfig b200 = narrow_device("b200_sxm");
  for (const Precision precision : {Precision::kNvfp4, Precision::kFp8Block, Precision::kFp8}) {
    const KernelCost cost = model.cost(streaming_product(precision), b200);
    EXPECT_NEAR(launch_us(cost), 9, 1e-6) << to_string(precision);
    EXPECT_EQ(cost.provenance, Provenance::kExtrapolated) << to_string(precision);
  }
}

}  // namespace
}  // namespace orrery::narrow_weights_test
