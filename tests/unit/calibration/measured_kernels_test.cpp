// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/operator_kernels.h"

#include <gtest/gtest.h>

#include "models/kernels/calibrated_model.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::measured_kernels_test {
namespace {

OperatorTable table(const std::string& system, const std::string& precision, double latency_us) {
  OperatorRow row;
  row.precision = precision;
  row.m = 64;
  row.n = row.k = 4096;
  row.latency_us = latency_us;
  OperatorTable table;
  table.systems = {system};
  table.rows = {row};
  return table;
}

TEST(MeasuredKernels, ARowOfOneKernelIsItsTime) {
  const auto measured = measured_kernels(table("h200_sxm", "bf16", 12.5),
                                         shipped_accelerator("h200_sxm"), CalibratedModel());
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_DOUBLE_EQ(measured[0].time_us, 12.5);
}

TEST(MeasuredKernels, AProductHasWhatItsQuantisationLeaves) {
  const CalibratedModel priors;
  const auto measured =
      measured_kernels(table("h200_sxm", "fp8", 40), shipped_accelerator("h200_sxm"), priors);
  ASSERT_EQ(measured.size(), 1U);
  EXPECT_EQ(measured[0].kernel.kind, KernelClass::kGemm);
  EXPECT_GT(measured[0].time_us, 0);
  EXPECT_LT(measured[0].time_us, 40);
}

TEST(MeasuredKernels, ARowShorterThanItsQuantisationTellsNothing) {
  EXPECT_TRUE(measured_kernels(table("h200_sxm", "fp8", 0.1), shipped_accelerator("h200_sxm"),
                               CalibratedModel())
                  .empty());
}

TEST(MeasuredKernels, RowsOfOtherDevicesDoNotCount) {
  EXPECT_TRUE(measured_kernels(table("h100_sxm", "bf16", 12.5), shipped_accelerator("h200_sxm"),
                               CalibratedModel())
                  .empty());
}

}  // namespace
}  // namespace orrery::measured_kernels_test
