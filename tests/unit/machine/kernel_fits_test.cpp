// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/kernel_fits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

namespace orrery::kernel_fits_test {
namespace {

KernelFit fit_with(double launch) {
  KernelFit fit;
  fit.table = "gemm";
  fit.precision = Precision::kFp8;
  fit.parameters["gemm.launch"].value = launch;
  fit.parameters["quantize.launch"].value = launch;
  return fit;
}

TEST(KernelFits, AFitIsReadWhenItIsUsedAndOnceForAllCopies) {
  int reads = 0;
  KernelFits fits;
  fits.add({Precision::kFp8, {"gemm"}}, [&reads] {
    ++reads;
    return fit_with(2);
  });
  const KernelFits copy = fits;
  EXPECT_EQ(fits.subject(0).precision, Precision::kFp8);
  EXPECT_FALSE(fits.is_read(0));
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(std::as_const(fits)[0].parameters.at("gemm.launch").value, 2);
  EXPECT_EQ(copy.at(0).parameters.at("gemm.launch").value, 2);
  EXPECT_EQ(reads, 1);
}

TEST(KernelFits, ACopyThatChangesLeavesTheOtherAsItWas) {
  KernelFits fits = {fit_with(2)};
  const KernelFits before = fits;
  for (KernelFit& fit : fits) fit.parameters["gemm.launch"].value = 3;
  EXPECT_EQ(before[0].parameters.at("gemm.launch").value, 2);
  EXPECT_EQ(std::as_const(fits)[0].parameters.at("gemm.launch").value, 3);
}

TEST(KernelFits, WhatIsWrongWithAFitIsThrownAtEveryUse) {
  KernelFits fits;
  fits.add({Precision::kBf16, {"gemm"}},
           []() -> KernelFit { throw std::runtime_error("a broken line"); });
  EXPECT_THROW(fits.at(0), std::runtime_error);
  EXPECT_THROW(fits.at(0), std::runtime_error);
  EXPECT_THROW(fits.at(1), std::out_of_range);
}

TEST(KernelFits, TheSubjectOfAFitThatIsGivenIsWhatItsParametersName) {
  const KernelFits fits = {fit_with(2)};
  EXPECT_TRUE(fits.is_read(0));
  EXPECT_EQ(fits.subject(0).precision, Precision::kFp8);
  EXPECT_THAT(fits.subject(0).groups, testing::ElementsAre("gemm", "quantize"));
}

}  // namespace
}  // namespace orrery::kernel_fits_test
