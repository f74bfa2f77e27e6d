// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/row_ratios.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"
#include "validation/calibration/calibrate.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery::row_ratios_test {
namespace {

const AcceleratorConfig& h200() {
  static const config::Library library(ORRERY_SOURCE_DIR "/configs");
  static const auto accelerator = config::load<AcceleratorConfig>(
      library.locate("accelerators", "h200_sxm", ""), library, "accelerators");
  return accelerator;
}

OperatorRow product_row(std::int64_t m, std::int64_t n, const std::string& precision) {
  OperatorRow row;
  row.precision = precision;
  row.m = m;
  row.n = n;
  row.k = 4096;
  return row;
}

double predicted_us(const KernelModel& model, const std::vector<Kernel>& kernels) {
  Picoseconds total = 0;
  for (const Kernel& kernel : kernels) total += model.cost(kernel, h200()).duration;
  return to_seconds(total).base() * 1e6;
}

/// Priors of the tile model.
Calibration priors() {
  Calibration calibration;
  calibration.id = "test";
  calibration.model = "tiles";
  calibration.rates.memory = h200().memory.bandwidth.value;
  return calibration;
}

KernelFit fit_of(Precision precision) {
  KernelFit fit;
  fit.table = "gemm";
  fit.precision = precision;
  fit.parameters["gemm.launch"] = {1.6, "us", 0, ParameterProvenance::kFitted};
  fit.residuals = {{0, 40, 0, 0.05}};
  return fit;
}

CalibratedModel with(KernelFit fit) {
  Calibration calibration = priors();
  calibration.fits = {std::move(fit)};
  return CalibratedModel(calibration);
}

/// Products that took `factor` of what the priors say.
std::vector<FitRow> rows(Precision precision, double factor) {
  std::vector<FitRow> all;
  const CalibratedModel model = with(fit_of(precision));
  for (std::int64_t m = 1; m <= 4096; m *= 2) {
    for (std::int64_t n = 512; n <= 16384; n += 512) {
      FitRow row;
      row.kernels = operator_kernels(OperatorTableKind::kGemm,
                                     product_row(m, n, to_string(precision)), precision);
      row.measured_us = factor * predicted_us(model, row.kernels);
      all.push_back(std::move(row));
    }
  }
  return all;
}

TEST(RowRatios, AreWhatRowsTookOverWhatTheParametersSay) {
  const auto ratios =
      row_ratios(priors(), fit_of(Precision::kBf16), rows(Precision::kBf16, 1.1), h200(), 1000);
  ASSERT_EQ(ratios.size(), 13U * 32U);
  for (const MeasuredRatio& ratio : ratios) EXPECT_NEAR(ratio.ratio, 1.1, kRatioStep);
}

TEST(RowRatios, TheSumOfARowOfSeveralKernelsIsWhatWasMeasured) {
  // fp8: the quantisation counts as predicted, the product bears the rest.
  KernelFit fit = fit_of(Precision::kFp8);
  const auto all = rows(Precision::kFp8, 1.1);
  ASSERT_EQ(all[0].kernels.size(), 2U);
  fit.ratios = row_ratios(priors(), fit, all, h200(), 1000);
  const CalibratedModel model = with(fit);
  for (const FitRow& row : all) {
    EXPECT_NEAR(predicted_us(model, row.kernels) / row.measured_us, 1, 0.01);
    EXPECT_EQ(model.cost(row.kernels[0], h200()).duration,
              with(fit_of(Precision::kFp8)).cost(row.kernels[0], h200()).duration);
  }
}

TEST(RowRatios, ARowShorterThanItsOtherKernelsMakesNothingNegative) {
  KernelFit fit = fit_of(Precision::kFp8);
  fit.ratios = row_ratios(priors(), fit, rows(Precision::kFp8, 0.05), h200(), 1000);
  ASSERT_FALSE(fit.ratios.empty());
  for (const MeasuredRatio& ratio : fit.ratios) EXPECT_EQ(ratio.ratio, 0.25);
}

TEST(RowRatios, KeepTheirShareOfManyRowsFromAllSizes) {
  const auto ratios =
      row_ratios(priors(), fit_of(Precision::kBf16), rows(Precision::kBf16, 1.1), h200(), 200);
  EXPECT_EQ(ratios.size(), 200U);
  for (std::int64_t m = 1; m <= 4096; m *= 2) {
    const auto count = std::count_if(ratios.begin(), ratios.end(),
                                     [m](const auto& ratio) { return ratio.shape.m == m; });
    EXPECT_GE(count, 14) << m;
    EXPECT_LE(count, 17) << m;
  }
}

TEST(RowRatios, LeaveOutARowThatNoNeighbourConfirms) {
  auto all = rows(Precision::kBf16, 1.1);
  all[200].measured_us *= 3;
  const auto ratios = row_ratios(priors(), fit_of(Precision::kBf16), all, h200(), 1000);
  EXPECT_EQ(ratios.size(), all.size() - 1);
  for (const MeasuredRatio& ratio : ratios) EXPECT_NEAR(ratio.ratio, 1.1, kRatioStep);
}

/// A table of products that took what the priors say times a factor that changes with the size;
/// held-out groups as told.
CalibrationInput table(double held_out_factor) {
  CalibrationInput input;
  input.table.kind = OperatorTableKind::kGemm;
  input.table.systems = {"h200_sxm"};
  input.file = {"gemm.csv", std::string(64, 'a'), "2026-01-02", "made by a test", 0};
  const CalibratedModel model = with(fit_of(Precision::kBf16));
  for (const std::int64_t m : {16, 2048}) {
    for (std::int64_t n = 512; n <= 16384; n += 512) {
      OperatorRow row = product_row(m, n, "bf16");
      row.latency_us =
          predicted_us(model, operator_kernels(input.table.kind, row, Precision::kBf16)) *
          (1 + 0.2 * std::sin(std::log(static_cast<double>(m * n))));
      if (is_held_out(shape_group(input.table.kind, row))) row.latency_us *= held_out_factor;
      input.table.rows.push_back(row);
    }
  }
  return input;
}

Calibration calibrated(double held_out_factor) {
  return calibrate("tiles", h200(), {table(held_out_factor)}, "a test",
                   [](const std::string&, std::size_t) {});
}

TEST(RowRatios, OfACalibrationAreOfFittedRowsOnly) {
  const Calibration calibration = calibrated(1), other = calibrated(3);
  const KernelFit& fit = calibration.fits.at(0);
  ASSERT_FALSE(fit.ratios.empty());
  for (const MeasuredRatio& ratio : fit.ratios) {
    const OperatorRow row = product_row(ratio.shape.m, ratio.shape.n, "bf16");
    EXPECT_FALSE(is_held_out(shape_group(OperatorTableKind::kGemm, row)));
  }
  EXPECT_EQ(fit.ratios.size(), static_cast<std::size_t>(fit.fit_error.count));
  EXPECT_EQ(write_ratios(fit.ratios.all()), write_ratios(other.fits.at(0).ratios.all()));
}

TEST(RowRatios, AreJudgedOnRowsThatWereNotFitted) {
  const Calibration calibration = calibrated(1);
  const KernelFit& fit = calibration.fits.at(0);
  EXPECT_EQ(fit.structure_error.count, fit.held_out_error.count);
  EXPECT_LT(fit.held_out_error.mape, 0.6 * fit.structure_error.mape);
}

/// A text block that is not spelled as `orrery calibrate` spells it goes through the YAML parser.
TEST(RowRatios, OfAFileAreTheSameInAnySpellingOfYaml) {
  const Calibration written = calibrated(1);
  std::string text = to_yaml(written);
  const std::string key = "measured_ratios: |\n";
  text.replace(text.find(key), key.size(), "measured_ratios: |  # of fitted rows\n");
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     (std::to_string(::getpid()) + "_ratios_spelling.yaml");
  std::ofstream(path) << text;
  EXPECT_EQ(to_yaml(load_calibration(path.string())), to_yaml(written));
  std::filesystem::remove(path);
}

TEST(RowRatios, OfAFileReadBackAsTheyWereWritten) {
  const Calibration written = calibrated(1);
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) /
                                     (std::to_string(::getpid()) + "_ratios_round_trip.yaml");
  std::ofstream(path) << to_yaml(written);
  const Calibration read = load_calibration(path.string());
  EXPECT_EQ(to_yaml(read), to_yaml(written));
  EXPECT_EQ(read.fits[0].ratios.size(), written.fits[0].ratios.size());
  std::string text = to_yaml(written);
  const std::size_t block = text.find("measured_ratios: |\n");
  const std::size_t digit = text.find_first_of("123456789", block);
  text[digit] = 'x';
  std::ofstream(path) << text;
  const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(digit), '\n');
  const Calibration later =
      load_calibration(path.string(), config::default_library(), FitsRead::kWhenAsked);
  EXPECT_FALSE(later.fits[0].ratios.empty());
  const auto asked = [&later] { later.fits[0].ratios.all(); };
  const auto now = [&path] { load_calibration(path.string()); };
  for (const std::function<void()>& read_all :
       std::vector<std::function<void()>>{asked, asked, now}) {
    try {
      read_all();
      FAIL() << "a broken line passes";
    } catch (const config::ConfigError& error) {
      const std::string place = path.string() + ":" + std::to_string(line) + ":";
      EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
    }
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace orrery::row_ratios_test
