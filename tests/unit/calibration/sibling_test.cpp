// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/sibling.h"

#include <gtest/gtest.h>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"
#include "tests/unit/machine/shipped_library.h"
#include "validation/calibration/calibrate.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery::sibling_test {
namespace {

CalibratedDevice with_fit(const std::string& name, double launch) {
  CalibratedDevice with{shipped_accelerator(name), {}};
  with.calibration.id = with.calibration.accelerator = name;
  with.calibration.model = "tiles";
  KernelFit fit;
  fit.table = "gemm";
  fit.parameters["gemm.launch"] = {launch, "us", 0.1, ParameterProvenance::kFitted};
  fit.fitted = {"gemm.launch"};
  fit.covariance = {{0.01}};
  fit.shapes[KernelClass::kGemm] = {{1, 1}, {1, 1 << 20}, {1, 1 << 20}, {1, 1 << 20}};
  fit.residuals = {{0, 40, 0, 0.05}};
  with.calibration.fits = {fit};
  return with;
}

TEST(Sibling, IsTheNearestByRates) {
  const auto fit = sibling_fit({with_fit("b200_sxm", 3), with_fit("h100_sxm", 4),
                                with_fit("h200_sxm", 5), with_fit("a100_sxm", 6)},
                               "tiles", shipped_accelerator("a100_sxm"), "gemm", Precision::kBf16);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->sibling, "h100_sxm");  // 3.35 of 2.04 TB/s; never itself
  EXPECT_EQ(fit->parameters.at("gemm.launch").provenance, ParameterProvenance::kSibling);
}

TEST(Sibling, ADeviceThatTookParametersItselfGivesNone) {
  CalibratedDevice taken = with_fit("h100_sxm", 4);
  taken.calibration.fits[0].sibling = "h200_sxm";
  EXPECT_FALSE(
      sibling_fit({taken}, "tiles", shipped_accelerator("a100_sxm"), "gemm", Precision::kBf16));
}

/// Products that take what an A100's memory needs for the share of their bytes.
CalibrationInput products(double share) {
  CalibrationInput input;
  input.table.kind = OperatorTableKind::kGemm;
  input.table.systems = {"a100_sxm"};
  input.file.file = "gemm.csv";
  for (std::int64_t n = 4096; n <= 65536; n += 1024) {
    for (const std::int64_t m : {1, 8}) {
      OperatorRow row;
      row.precision = "bf16";
      row.m = m;
      row.n = n;
      row.k = 8192;
      const auto bytes = static_cast<double>(n * row.k * 2);
      row.latency_us = 5 + share * bytes / 2.039e6;
      input.table.rows.push_back(row);
    }
  }
  return input;
}

Calibration calibrated(double share) {
  return calibrate(
      "tiles", shipped_accelerator("a100_sxm"), {products(share)}, "a test",
      [](const std::string&, std::size_t) {}, [] { return std::vector{with_fit("h100_sxm", 4)}; });
}

TEST(Sibling, ATableThatBreaksPhysicsTakesItsParametersAndTheyAreExtrapolated) {
  const Calibration calibration = calibrated(0.5);
  ASSERT_EQ(calibration.fits.size(), 1U);
  EXPECT_EQ(calibration.fits[0].sibling, "h100_sxm");
  ASSERT_EQ(calibration.left_out.size(), 2U);
  EXPECT_EQ(calibration.left_out[0].rule, "faster than the memory");
  EXPECT_EQ(calibration.left_out[1].rule, "of kernels that break physics elsewhere in the table");
  EXPECT_EQ(calibration.left_out[0].rows + calibration.left_out[1].rows, 122);
  OperatorRow row = products(1).table.rows.front();
  const CalibratedModel model(calibration);
  const Kernel kernel = operator_kernels(OperatorTableKind::kGemm, row, Precision::kBf16).front();
  EXPECT_EQ(model.cost(kernel, shipped_accelerator("a100_sxm")).provenance,
            Provenance::kExtrapolated);
}

/// Decode of heads with keys of their own, 1.3 times as long as the memory takes, and of eight that
/// share theirs, half as long.
CalibrationInput decodes() {
  CalibrationInput input;
  input.table.kind = OperatorTableKind::kAttentionDecode;
  input.table.systems = {"a100_sxm"};
  input.file.file = "attention_decode.csv";
  for (const bool grouped : {true, false}) {
    for (const std::int64_t heads : {8, 16, 24, 32, 40, 48, 56, 64, 96, 128}) {
      for (const std::int64_t kv_len : {4096, 8192, 16384, 32768}) {
        for (const std::int64_t batch : {16, 32, 64}) {
          OperatorRow row;
          row.precision = row.kv_precision = "bf16";
          row.batch = batch;
          row.kv_len = kv_len;
          row.heads = heads;
          row.kv_heads = grouped ? heads / 8 : heads;
          row.head_dim = 128;
          const auto bytes = static_cast<double>(batch * kv_len * row.kv_heads * 128 * 2 * 2);
          row.latency_us = 10 + (grouped ? 0.5 : 1.3) * bytes / 2.039e6;
          input.table.rows.push_back(row);
        }
      }
    }
  }
  return input;
}

TEST(Sibling, GivesOnlyWhatBreaksPhysicsAndTheRestIsFitted) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  const Calibration calibration = calibrate(
      "tiles", shipped_accelerator("a100_sxm"), {decodes()}, "a test",
      [](const std::string&, std::size_t) {},
      [&library] {
        return std::vector{
            CalibratedDevice{shipped_accelerator("h100_sxm"),
                             load_calibration(library.locate("calibrations", "h100_sxm", ""))}};
      });
  ASSERT_EQ(calibration.fits.size(), 1U);
  const CalibratedModel model(calibration);
  const auto provenance_of = [&model](const OperatorRow& row) {
    return model
        .cost(operator_kernels(OperatorTableKind::kAttentionDecode, row, Precision::kBf16).front(),
              shipped_accelerator("a100_sxm"))
        .provenance;
  };
  const CalibrationInput input = decodes();
  EXPECT_EQ(provenance_of(input.table.rows.front()), Provenance::kExtrapolated);
  EXPECT_EQ(provenance_of(input.table.rows.back()), Provenance::kCalibrated);
  for (const auto& [name, parameter] : calibration.fits[0].parameters)
    EXPECT_EQ(parameter.provenance == ParameterProvenance::kSibling,
              name.find(".grouped_") != std::string::npos)
        << name;
}

TEST(Sibling, ATableWithinPhysicsIsFitted) {
  const Calibration calibration = calibrated(1.2);
  ASSERT_EQ(calibration.fits.size(), 1U);
  EXPECT_TRUE(calibration.fits[0].sibling.empty());
  EXPECT_TRUE(calibration.left_out.empty());
}

}  // namespace
}  // namespace orrery::sibling_test
