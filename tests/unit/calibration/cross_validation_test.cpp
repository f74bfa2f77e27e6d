// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/cross_validation.h"

#include <gtest/gtest.h>

#include "models/kernels/device/roofline.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::cross_validation_test {
namespace {

const AcceleratorConfig& h200() {
  static const AcceleratorConfig accelerator = shipped_accelerator("h200_sxm");
  return accelerator;
}

/// Rows of four groups at 0.6 of the matrix peak; those of the last take `longer` as long.
std::vector<FitRow> rows(double longer) {
  std::vector<double> truth = RooflineFamily().priors(h200(), Precision::kBf16);
  truth[static_cast<std::size_t>(RooflineParameter::kMatrixEfficiency)] = 0.6;
  std::vector<FitRow> all;
  for (int group = 0; group < 4; ++group) {
    for (int size = 1; size <= 30; ++size) {
      Kernel kernel;
      kernel.kind = KernelClass::kGemm;
      kernel.matrix_flops = Flops(1e11 * size * (group + 1));
      kernel.read = Bytes(1e6 * size);
      const double time = RooflineFamily().time(kernel, h200(), truth.data()).total_us;
      all.push_back({{kernel}, time * (group == 3 ? longer : 1), "model/" + std::to_string(group)});
    }
  }
  return all;
}

ErrorSummary cross_validated(double longer) {
  Calibration calibration;
  calibration.id = "test";
  calibration.model = "roofline";
  calibration.rates.memory = h200().memory.bandwidth.value;
  KernelFit fit;
  fit.table = "gemm";
  fit.residuals = {{}};
  return summarise(
      leave_models_out(calibration, h200(), fit, {"gemm.matrix_efficiency"}, rows(longer), 100));
}

TEST(WholeModels, ThatFollowTheOthersArePredictedByThem) {
  const ErrorSummary errors = cross_validated(1);
  EXPECT_EQ(errors.count, 120);
  EXPECT_LT(errors.mape, 1e-3);
}

TEST(WholeModels, TheOneLeftOutIsNotFitted) {
  // Predicted by the others, the last is half of what it takes, whatever its own rows say.
  EXPECT_NEAR(cross_validated(2).worst, -0.5, 0.01);
}

TEST(WholeModels, TwoAreTooFewToLeaveOneOut) {
  std::vector<FitRow> two = rows(1);
  two.resize(60);
  Calibration calibration;
  calibration.model = "roofline";
  EXPECT_TRUE(leave_models_out(calibration, h200(), {}, {"gemm.launch"}, two, 100).empty());
}

}  // namespace
}  // namespace orrery::cross_validation_test
