// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/kernels/calibrated_model.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/draws.h"
#include "sim/machine/kernel_model.h"
#include "sim/machine/limits.h"

namespace orrery::calibrated_roofline_test {
namespace {

using namespace literals;

/// 100 TFLOP/s bf16 and 1 TB/s, all achievable by its priors, 2 us launch.
AcceleratorConfig chip() {
  AcceleratorConfig a;
  a.id = "test_chip";
  a.name = "test chip";
  a.compute.matrix[Precision::kBf16].value = 100_TFLOPps;
  a.compute.matrix[Precision::kFp8].value = 200_TFLOPps;
  a.compute.vector.value = 10_TFLOPps;
  a.memory.bandwidth.value = 1_TBps;
  a.kernel.matrix_efficiency[Precision::kBf16].value = 1;
  a.kernel.matrix_efficiency[Precision::kFp8].value = 1;
  a.kernel.vector_efficiency.value = 1;
  a.kernel.memory_efficiency.value = 1;
  a.kernel.exponent.value = 4;
  a.kernel.launch.value = 2_us;
  return a;
}

/// Half of the matrix peak, 5 us launch, known to 1 % and 10 %; residuals of 20 % below 100 us and
/// 5 % above.
Calibration halved() {
  Calibration c;
  c.id = "test_chip";
  c.model = "roofline";
  c.rates.matrix = {{Precision::kBf16, 100_TFLOPps}};
  c.rates.memory = 1_TBps;
  KernelFit fit;
  fit.table = "gemm";
  fit.precision = Precision::kBf16;
  fit.parameters["gemm.matrix_efficiency"] = {0.5, "1", 0.005, ParameterProvenance::kFitted};
  fit.parameters["gemm.launch"] = {5, "us", 0.5, ParameterProvenance::kFitted};
  fit.fitted = {"gemm.matrix_efficiency", "gemm.launch"};
  fit.covariance = {{1e-4, 0}, {0, 1e-2}};
  fit.shapes[KernelClass::kGemm] = {{1, 1}, {1, 4096}, {64, 8192}, {64, 8192}};
  fit.residuals = {{100, 40, 0, 0.2}, {0, 40, 0, 0.05}};
  c.fits = {fit};
  return c;
}

Kernel gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  const auto product = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  kernel.matrix_flops = Flops(2 * product);
  return kernel;
}

double spread(const std::vector<double>& factors) {
  const auto [p10, p90] = p10_p90(factors);
  return std::log(p90 / p10) / (2 * 1.2815515655446004);
}

TEST(CalibratedRoofline, FittedParametersReplaceThePriors) {
  // 2 x 4096 x 8192 x 8192 = 549.8 GFLOP at 50 TFLOP/s = 10.995 ms, and 5 us.
  const CalibratedModel model(halved());
  const KernelCost cost = model.cost(gemm(4096, 8192, 8192), chip());
  EXPECT_NEAR(static_cast<double>(cost.duration), 2.0 * 4096 * 8192 * 8192 / 50e12 * 1e12 + 5e6, 2);
  EXPECT_EQ(cost.provenance, Provenance::kCalibrated);
}

TEST(CalibratedRoofline, AClassWithoutAFitKeepsItsPriorsAndIsAnalytic) {
  const CalibratedModel model(halved());
  Kernel kernel = gemm(64, 64, 64);
  kernel.kind = KernelClass::kGroupedGemm;
  EXPECT_EQ(model.cost(kernel, chip()).duration, CalibratedModel().cost(kernel, chip()).duration);
  EXPECT_EQ(model.cost(kernel, chip()).provenance, Provenance::kAnalytic);
}

TEST(CalibratedRoofline, AnotherPrecisionIsNoneOfTheFit) {
  const CalibratedModel model(halved());
  Kernel kernel = gemm(64, 64, 64);
  kernel.precision = Precision::kFp8;
  EXPECT_EQ(model.cost(kernel, chip()).provenance, Provenance::kAnalytic);
}

TEST(CalibratedRoofline, AShapeOutsideTheFittedRangeIsExtrapolated) {
  const CalibratedModel model(halved());
  EXPECT_EQ(model.cost(gemm(4096, 64, 64), chip()).provenance, Provenance::kCalibrated);
  EXPECT_EQ(model.cost(gemm(4097, 64, 64), chip()).provenance, Provenance::kExtrapolated);
  EXPECT_EQ(model.cost(gemm(64, 63, 64), chip()).provenance, Provenance::kExtrapolated);
}

TEST(CalibratedRoofline, AMachineWithOtherRatesKeepsTheSharesAndIsExtrapolated) {
  const CalibratedModel model(halved());
  AcceleratorConfig faster = chip();
  faster.compute.matrix[Precision::kBf16].value = 200_TFLOPps;
  const KernelCost cost = model.cost(gemm(4096, 8192, 8192), faster);
  EXPECT_NEAR(static_cast<double>(cost.duration), 2.0 * 4096 * 8192 * 8192 / 100e12 * 1e12 + 5e6,
              2);
  EXPECT_EQ(cost.provenance, Provenance::kExtrapolated);
}

TEST(CalibratedRoofline, DrawsSpreadAsTheResidualsOfTheirSize) {
  const CalibratedModel model(halved());
  // 11 ms: residuals of 5 %, and the rate known to 1 %: sqrt(0.05^2 + 0.01^2) = 0.0510.
  EXPECT_NEAR(spread(model.draws(gemm(4096, 8192, 8192), chip(), 0)), 0.051, 0.004);
  // 5 us of launch known to 10 % and 20 % residuals: sqrt(0.2^2 + 0.1^2) = 0.224.
  EXPECT_NEAR(spread(model.draws(gemm(1, 64, 64), chip(), 0)), 0.224, 0.02);
}

TEST(CalibratedRoofline, ABiasOnUnseenShapesWidensTheDrawsAroundThePrediction) {
  Calibration biased = halved();
  biased.fits[0].residuals = {{0, 40, 0.12, 0.05}};
  const std::vector<double> factors =
      CalibratedModel(biased).draws(gemm(4096, 8192, 8192), chip(), 0);
  // sqrt(0.12^2 + 0.05^2 + 0.01^2) = 0.130, centred on the prediction.
  EXPECT_NEAR(spread(factors), 0.13, 0.01);
  const auto [p10, p90] = p10_p90(factors);
  EXPECT_NEAR(std::log(p10 * p90), 0, 0.02);
}

TEST(CalibratedRoofline, ExtrapolationIsLessCertain) {
  const CalibratedModel model(halved());
  EXPECT_GT(spread(model.draws(gemm(8192, 8192, 8192), chip(), 0)),
            1.5 * spread(model.draws(gemm(4096, 8192, 8192), chip(), 0)));
}

TEST(CalibratedRoofline, PriorsAreAsUncertainAsTheAcceleratorSays) {
  AcceleratorConfig a = chip();
  a.kernel.uncertainty.value = 0.3;
  EXPECT_NEAR(spread(CalibratedModel().draws(gemm(64, 64, 64), a, 0)), 0.3, 0.01);
}

// 0.55 of it, as public benchmarks of norms, casts, gated units and optimizers spread.
TEST(CalibratedRoofline, PriorsOfKernelsThatOnlyStreamAreMoreCertain) {
  AcceleratorConfig a = chip();
  a.kernel.uncertainty.value = 0.4;
  Kernel norm;
  norm.kind = KernelClass::kNormalization;
  norm.m = norm.n = 4096;
  norm.read = norm.written = Bytes(1e9);
  const auto slower = [&] {
    return std::log(p10_p90(CalibratedModel().draws(norm, a, 0)).second) / 1.2816;
  };
  EXPECT_NEAR(slower(), 0.22, 0.01);
  norm.kind = KernelClass::kScan;
  EXPECT_NEAR(slower(), 0.4, 0.01);
}

TEST(CalibratedRoofline, NoDrawBeatsTheRatesOfTheDevice) {
  const AcceleratorConfig a = chip();
  Kernel norm;
  norm.kind = KernelClass::kNormalization;
  norm.m = norm.n = 4096;
  norm.read = norm.written = Bytes(1e9);
  const double time = to_seconds(CalibratedModel().cost(norm, a).duration).base();
  const std::vector<double> draws = CalibratedModel().draws(norm, a, 0);
  EXPECT_NEAR(time * *std::min_element(draws.begin(), draws.end()), least_time(norm, a).base(),
              1e-12);
}

TEST(CalibratedRoofline, EqualKernelsErrAlikeAndOthersApart) {
  const CalibratedModel model(halved());
  Kernel named = gemm(64, 64, 64);
  named.name = "query";
  EXPECT_EQ(model.draws(named, chip(), 0), model.draws(gemm(64, 64, 64), chip(), 0));
  EXPECT_NE(model.draws(gemm(64, 64, 128), chip(), 0), model.draws(gemm(64, 64, 64), chip(), 0));
  EXPECT_NE(model.draws(gemm(64, 64, 64), chip(), 1), model.draws(gemm(64, 64, 64), chip(), 0));
}

TEST(CalibratedRoofline, AParameterOfAnotherModelIsAnError) {
  Calibration calibration = halved();
  calibration.fits[0].parameters["gemm.epilogue"] = {1, "us", 0, ParameterProvenance::kPrior};
  EXPECT_THROW(CalibratedModel{calibration}, config::ConfigError);
}

TEST(CalibratedRoofline, WritesAndTurnaroundsCostWhatTheFitSays) {
  // 1 GB read and 1 GB written at 1 TB/s: 2 ms; written bytes 10 % dearer: + 0.1 ms; each byte of
  // the smaller direction 20 %: + 0.2 ms.
  Calibration calibration = halved();
  KernelFit& fit = calibration.fits[0];
  fit.parameters = {{"stream.write_cost", {0.1, "1", 0, ParameterProvenance::kFitted}},
                    {"stream.turnaround", {0.2, "1", 0, ParameterProvenance::kFitted}}};
  fit.fitted.clear();
  fit.covariance.clear();
  Kernel kernel;
  kernel.kind = KernelClass::kElementwise;
  kernel.read = 1_GB;
  kernel.written = 1_GB;
  const CalibratedModel model(calibration);
  EXPECT_NEAR(static_cast<double>(model.cost(kernel, chip()).duration), 2.3e9 + 2e6, 10);
}

TEST(Draws, AreTheQuantilesOfTheNormalDistributionInTheOrderOfTheirKey) {
  std::vector<double> a = normal_draws(0, "a"), b = normal_draws(0, "b");
  EXPECT_NE(a, b);
  EXPECT_EQ(a, normal_draws(0, "a"));
  EXPECT_NE(a, normal_draws(1, "a"));
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  EXPECT_EQ(a, b);
  // The 64th and 65th of 128 are the quantiles 63.5/128 and 64.5/128.
  EXPECT_DOUBLE_EQ(a[63], -a[64]);
  const auto [p10, p90] = p10_p90(a);
  EXPECT_NEAR(p10, -1.2815515655446004, 0.02);
  EXPECT_NEAR(p90, 1.2815515655446004, 0.02);
}

TEST(Draws, OfDifferentKeysAreUncorrelated) {
  // 128 values: the correlation of independent ones has a standard deviation of 1/sqrt(128) = 0.09.
  const std::vector<double> a = normal_draws(0, "a"), b = normal_draws(0, "b");
  double product = 0, square = 0;
  for (std::size_t i = 0; i < kDraws; ++i) {
    product += a[i] * b[i];
    square += a[i] * a[i];
  }
  EXPECT_LT(std::abs(product / square), 0.3);
}

}  // namespace
}  // namespace orrery::calibrated_roofline_test
