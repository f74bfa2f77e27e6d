// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/measured_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/kernels/calibrated_model.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::measured_model_test {
namespace {

Kernel product(std::int64_t m) {
  Kernel kernel;
  kernel.name = "a product";
  kernel.kind = KernelClass::kGemm;
  kernel.m = m;
  kernel.n = kernel.k = 4096;
  kernel.matrix_flops = Flops(2.0 * static_cast<double>(m) * 4096 * 4096);
  kernel.read = Bytes(2.0 * 4096 * (4096 + static_cast<double>(m)));
  return kernel;
}

MeasuredModel model(const std::vector<MeasuredKernel>& measured) {
  return {std::make_unique<CalibratedModel>(), measured};
}

TEST(MeasuredModel, AMeasuredKernelTakesTheMeasuredTime) {
  Kernel renamed = product(64);
  renamed.name = "another name";
  const KernelCost cost =
      model({{product(64), 12.5}}).cost(renamed, shipped_accelerator("h200_sxm"));
  EXPECT_EQ(cost.duration, 12'500'000u);
  EXPECT_EQ(cost.provenance, Provenance::kMeasured);
}

TEST(MeasuredModel, OtherShapesTakeTheTimeOfTheOtherModel) {
  const KernelCost cost =
      model({{product(64), 12.5}}).cost(product(65), shipped_accelerator("h200_sxm"));
  EXPECT_EQ(cost.duration,
            CalibratedModel().cost(product(65), shipped_accelerator("h200_sxm")).duration);
  EXPECT_EQ(cost.provenance, Provenance::kAnalytic);
}

TEST(MeasuredModel, AKernelThatMovesOtherBytesIsAnotherKernel) {
  Kernel more = product(64);
  more.read = more.read * 1.1;
  EXPECT_EQ(model({{product(64), 12.5}}).cost(more, shipped_accelerator("h200_sxm")).provenance,
            Provenance::kAnalytic);
}

TEST(MeasuredModel, TheShortestOfSeveralMeasurementsCounts) {
  const auto measured = model({{product(64), 12.5}, {product(64), 11.5}, {product(64), 13}});
  EXPECT_EQ(measured.cost(product(64), shipped_accelerator("h200_sxm")).duration, 11'500'000u);
}

TEST(MeasuredModel, MeasurementsAreMoreCertainThanPriors) {
  const auto width = [](const std::vector<double>& factors) {
    return *std::max_element(factors.begin(), factors.end()) -
           *std::min_element(factors.begin(), factors.end());
  };
  const auto measured = model({{product(64), 12.5}});
  EXPECT_LT(width(measured.draws(product(64), shipped_accelerator("h200_sxm"), 1)), 0.2);
  EXPECT_GT(width(measured.draws(product(65), shipped_accelerator("h200_sxm"), 1)), 0.2);
}

}  // namespace
}  // namespace orrery::measured_model_test
