// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/kernels/device/roofline.h"
#include "sim/units/hash.h"

namespace orrery::fit_test {
namespace {

using namespace literals;

AcceleratorConfig chip() {
  AcceleratorConfig a;
  a.id = "test_chip";
  a.name = "test chip";
  a.compute.matrix[Precision::kBf16].value = 1000_TFLOPps;
  a.compute.vector.value = 100_TFLOPps;
  a.memory.bandwidth.value = 4_TBps;
  a.kernel.matrix_efficiency[Precision::kBf16].value = 0.9;
  a.kernel.vector_efficiency.value = 0.9;
  a.kernel.memory_efficiency.value = 0.9;
  a.kernel.exponent.value = 4;
  a.kernel.launch.value = 5_us;
  return a;
}

const std::vector<double> kTruth = {0.7, 0.9, 0.8, 0, 0, 2.5, 3};

Kernel product(double m, double n, double k) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.matrix_flops = Flops(2 * m * n * k);
  kernel.read = Bytes(2 * (m * k + k * n));
  kernel.written = Bytes(2 * m * n);
  return kernel;
}

/// GEMMs of 30 groups whose times are those of `kTruth`, each off by a factor of its row and one of
/// its group.
std::vector<FitRow> rows(double row_noise, double group_noise) {
  std::vector<FitRow> rows;
  std::uint64_t state = 7;
  const auto noise = [&state](double sigma) {
    double sum = -6;  // twelve uniform numbers: a normal one, nearly (variance 12 / 12)
    for (int i = 0; i < 12; ++i) sum += next_uniform(state);
    return std::exp(sigma * sum);
  };
  for (int group = 0; group < 30; ++group) {
    const double n = 256 * (1 + group % 6 * 5), k = 512 * (1 + group / 6 * 4);
    const double common = noise(group_noise);
    for (double m = 1; m <= 16384; m *= 2) {
      FitRow row;
      row.kernels = {product(m, n, k)};
      row.measured_us = RooflineFamily().time(row.kernels[0], chip(), kTruth.data()).total_us *
                        common * noise(row_noise);
      row.group = std::to_string(group);
      rows.push_back(row);
    }
  }
  return rows;
}

const std::vector<std::string> kFree = {"gemm.matrix_efficiency", "gemm.memory_efficiency",
                                        "gemm.exponent", "gemm.launch"};

double truth_of(const std::string& name) {
  return kTruth[parameter_index(RooflineFamily(), name.substr(name.find('.') + 1))];
}

TEST(Fit, FindsTheParametersThatMadeTheMeasurements) {
  KernelFit fit;
  fit_parameters("roofline", rows(0, 0), chip(), kFree, fit);
  for (const std::string& parameter : kFree)
    EXPECT_NEAR(fit.parameters.at(parameter).value, truth_of(parameter), 1e-4 * truth_of(parameter))
        << parameter;
}

TEST(Fit, NoisyMeasurementsMoveParametersByAFewStandardErrors) {
  KernelFit fit;
  fit_parameters("roofline", rows(0.05, 0), chip(), kFree, fit);
  for (const std::string& parameter : kFree) {
    const CalibratedParameter& found = fit.parameters.at(parameter);
    EXPECT_GT(found.standard_error, 0) << parameter;
    EXPECT_LT(std::abs(found.value - truth_of(parameter)), 4 * found.standard_error) << parameter;
    EXPECT_LT(found.standard_error, 0.2 * found.value) << parameter;
  }
}

TEST(Fit, ErrorsSharedByAGroupWidenTheStandardErrors) {
  KernelFit apart, shared;
  fit_parameters("roofline", rows(0.05, 0), chip(), kFree, apart);
  fit_parameters("roofline", rows(0, 0.05), chip(), kFree, shared);
  // The same spread of single rows, but 30 instead of 450 independent errors: what hangs on all of
  // them is known sqrt(15) = 3.9 times worse.
  const auto error = [](const KernelFit& fit) {
    return fit.parameters.at("gemm.launch").standard_error;
  };
  EXPECT_GT(error(shared), 2 * error(apart));
}

TEST(Fit, OneWildMeasurementHardlyMovesIt) {
  std::vector<FitRow> wild = rows(0, 0);
  wild[100].measured_us *= 50;
  KernelFit fit;
  fit_parameters("roofline", wild, chip(), kFree, fit);
  EXPECT_NEAR(fit.parameters.at("gemm.matrix_efficiency").value, 0.7, 0.007);
}

TEST(Fit, AParameterThatNoRowTellsStaysAtItsPrior) {
  std::vector<FitRow> empty = rows(0.02, 0);
  for (FitRow& row : empty) row.kernels[0].matrix_flops = Flops(0);
  for (FitRow& row : empty)
    row.measured_us = RooflineFamily().time(row.kernels[0], chip(), kTruth.data()).total_us;
  KernelFit fit;
  fit_parameters("roofline", empty, chip(), kFree, fit);
  const CalibratedParameter& untold = fit.parameters.at("gemm.matrix_efficiency");
  EXPECT_EQ(untold.provenance, ParameterProvenance::kPrior);
  EXPECT_EQ(untold.value, 0.9);
  EXPECT_EQ(std::count(fit.fitted.begin(), fit.fitted.end(), "gemm.matrix_efficiency"), 0);
  EXPECT_NEAR(fit.parameters.at("gemm.memory_efficiency").value, 0.8, 0.01);
}

TEST(Fit, WhatIsKnownAlreadyIsHeld) {
  KernelFit fit;
  fit.parameters["gemm.launch"] = {3, "us", 0.1, ParameterProvenance::kMeasured};
  const std::vector<std::string> free(kFree.begin(), kFree.end() - 1);
  fit_parameters("roofline", rows(0, 0), chip(), free, fit);
  EXPECT_EQ(fit.parameters.at("gemm.launch").value, 3);
  EXPECT_EQ(fit.parameters.at("gemm.launch").provenance, ParameterProvenance::kMeasured);
  EXPECT_NEAR(fit.parameters.at("gemm.matrix_efficiency").value, 0.7, 1e-3);
}

TEST(Fit, CovarianceIsSymmetricWithTheSquaredStandardErrorsOnItsDiagonal) {
  KernelFit fit;
  fit_parameters("roofline", rows(0.05, 0.02), chip(), kFree, fit);
  ASSERT_EQ(fit.fitted.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const CalibratedParameter& p = fit.parameters.at(fit.fitted[i]);
    EXPECT_NEAR(std::sqrt(fit.covariance[i][i]), p.standard_error / p.value, 1e-9);
    for (std::size_t j = 0; j < 4; ++j)
      EXPECT_NEAR(fit.covariance[i][j], fit.covariance[j][i], 1e-12);
  }
}

TEST(Fit, FewerRowsThanParametersIsAnError) {
  std::vector<FitRow> few = rows(0, 0);
  few.resize(4);
  KernelFit fit;
  EXPECT_THROW(fit_parameters("roofline", few, chip(), kFree, fit), std::invalid_argument);
}

}  // namespace
}  // namespace orrery::fit_test
