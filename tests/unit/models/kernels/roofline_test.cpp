// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/calibrated_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "models/kernels/device/roofline.h"
#include "sim/config/diagnostics.h"

namespace orrery::roofline_test {
namespace {

using namespace literals;

/// 100 TFLOP/s bf16, 10 TFLOP/s vector, 1 TB/s, all fully achievable, 2 us launch.
AcceleratorConfig accelerator(double exponent) {
  AcceleratorConfig a;
  a.name = "test chip";
  a.compute.matrix[Precision::kBf16].value = 100_TFLOPps;
  a.compute.matrix[Precision::kFp8].value = 200_TFLOPps;
  a.compute.vector.value = 10_TFLOPps;
  a.memory.bandwidth.value = 1_TBps;
  a.kernel.matrix_efficiency[Precision::kBf16].value = 1;
  a.kernel.matrix_efficiency[Precision::kFp8].value = 1;
  a.kernel.vector_efficiency.value = 1;
  a.kernel.memory_efficiency.value = 1;
  a.kernel.exponent.value = exponent;
  a.kernel.launch.value = 2_us;
  return a;
}

Kernel kernel(Flops matrix, Bytes read) {
  Kernel k;
  k.kind = KernelClass::kGemm;
  k.matrix_flops = matrix;
  k.read = read;
  return k;
}

// As imported graphs have it where they tell no shapes.
TEST(Roofline, AConvolutionWithoutFlopsOnArraysTakesItsBytes) {
  AcceleratorConfig arrays = accelerator(1);
  arrays.compute.arrays.emplace();
  Kernel unknown = kernel(Flops(), 1_MB);
  unknown.kind = KernelClass::kConvolution;
  const RooflineFamily family;
  const std::vector<double> priors = family.priors(arrays, Precision::kBf16);
  EXPECT_NEAR(family.time(unknown, arrays, priors.data()).total_us, 2 + 1, 1e-9);
}

// By the lanes' time for softmax: tensor cores at a quarter of the rate wait no longer for it.
TEST(Roofline, SlowerTensorCoresLoseASmallerShareToSoftmax) {
  AcceleratorConfig a = accelerator(4);
  Kernel prompt = kernel(100_TFLOP, 1_MB);
  prompt.kind = KernelClass::kAttentionPrefill;
  prompt.vector_flops = 1_TFLOP;  // 0.1 s beside 1 s of products
  const RooflineFamily family;
  const auto seconds = [&](const AcceleratorConfig& on) {
    return family.time(prompt, on, family.priors(on, Precision::kBf16).data()).total_us * 1e-6;
  };
  EXPECT_NEAR(seconds(a), 1 / 0.45, 1e-3);  // nothing is known of how products are issued
  MatrixTileConfig& tile = a.core.emplace().matrix_tile.emplace();
  tile.issue = MatrixIssue::kWarpgroup;
  EXPECT_NEAR(seconds(a), 1 + 3 * 0.1, 5e-3);
  tile.issue = MatrixIssue::kWarp;
  EXPECT_NEAR(seconds(a), 1 + 5 * 0.1, 5e-3);
  a.compute.matrix[Precision::kBf16].value = 25_TFLOPps;
  EXPECT_NEAR(seconds(a), 4 + 5 * 0.1, 5e-3);
  a.compute.matrix[Precision::kBf16].value = 1000_TFLOPps;
  // Products lose no more than their share, here of 0.1 s beside as much of softmax.
  EXPECT_NEAR(seconds(a), std::pow(2, 0.25) * 0.1 / 0.45, 1e-3);
}

TEST(Roofline, ComputeAloneTakesFlopsOverPeakPlusLaunch) {
  // 1 TFLOP at 100 TFLOP/s = 10 ms.
  const KernelCost cost = CalibratedModel().cost(kernel(1_TFLOP, 0_B), accelerator(4));
  EXPECT_EQ(cost.duration, 10'002'000'000U);
  EXPECT_EQ(cost.launch, 2'000'000U);
  EXPECT_EQ(cost.bound, Bound::kTensor);
}

TEST(Roofline, BalancedWorkCostsThePthRootOfTwo) {
  // 10 ms of FLOPs and 10 ms of bytes, p = 4: 10 ms * 2^(1/4).
  const KernelCost cost = CalibratedModel().cost(kernel(1_TFLOP, 10_GB), accelerator(4));
  EXPECT_NEAR(static_cast<double>(cost.duration), 1e10 * std::pow(2, 0.25) + 2e6, 1);
}

TEST(Roofline, LiesBetweenTheTextbookRooflineAndTheSum) {
  for (const double p : {1.0, 1.5, 2.0, 4.0, 10.0}) {
    for (const double gigabytes : {0.1, 1.0, 5.0, 10.0, 40.0}) {
      const auto body = static_cast<double>(
          CalibratedModel().cost(kernel(1_TFLOP, Bytes(gigabytes * 1e9)), accelerator(p)).duration -
          2'000'000);
      const double compute = 1e10, memory = gigabytes * 1e9;  // ps
      EXPECT_GE(body, std::max(compute, memory) - 1) << p << " " << gigabytes;
      EXPECT_LE(body, compute + memory + 1) << p << " " << gigabytes;
    }
  }
}

TEST(Roofline, ADieHasItsShareOfThePackage) {
  AcceleratorConfig two = accelerator(4);
  two.dies = 2;
  const Picoseconds one = CalibratedModel().cost(kernel(1_TFLOP, 0_B), accelerator(4)).duration;
  EXPECT_EQ(CalibratedModel().cost(kernel(1_TFLOP, 0_B), two).duration - 2'000'000,
            2 * (one - 2'000'000));
}

TEST(Roofline, BlockFp8RunsAtTheRateOfFp8) {
  Kernel k = kernel(1_TFLOP, 0_B);
  k.precision = Precision::kFp8Block;
  EXPECT_EQ(CalibratedModel().cost(k, accelerator(4)).duration, 5'002'000'000U);
}

TEST(Roofline, AMissingPrecisionNamesThoseThatExist) {
  Kernel k = kernel(1_TFLOP, 0_B);
  k.precision = Precision::kInt8;
  try {
    CalibratedModel().cost(k, accelerator(4));
    FAIL();
  } catch (const config::ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              "precision: test chip has no matrix rate for 'int8'; it has bf16, fp8");
  }
}

TEST(Roofline, ACopyToTheDeviceIsBoundByTheHostLink) {
  // 1 GB over 50 GB/s: 20 ms; writing it to memory takes 1 ms beside that, (1 + 0.05^4)^(1/4) = 1
  // + 1.6e-6.
  AcceleratorConfig a = accelerator(4);
  a.host_link.bandwidth.value = 50_GBps;
  Kernel copy;
  copy.kind = KernelClass::kCopy;
  copy.written = 1_GB;
  copy.host = 1_GB;
  const KernelCost cost = CalibratedModel().cost(copy, a);
  EXPECT_NEAR(static_cast<double>(cost.duration), 2e10 * (1 + 0.25 * std::pow(0.05, 4)) + 2e6, 10);
  EXPECT_EQ(cost.bound, Bound::kHost);
}

TEST(Roofline, ACopyToAHostWithoutALinkIsAnError) {
  Kernel copy;
  copy.host = 1_GB;
  EXPECT_THROW(CalibratedModel().cost(copy, accelerator(4)), config::ConfigError);
}

TEST(Roofline, AnEmptyKernelIsAllLaunch) {
  const KernelCost cost = CalibratedModel().cost(kernel(0_TFLOP, 0_B), accelerator(4));
  EXPECT_EQ(cost.duration, cost.launch);
  EXPECT_EQ(cost.bound, Bound::kLatency);
}

TEST(Roofline, SparseWeightsRunAtTheSparseRateOfTheDevice) {
  AcceleratorConfig chip = accelerator(4);
  Kernel sparse = kernel(1_TFLOP, 0_B);
  sparse.weights.sparse = true;
  const Picoseconds dense = CalibratedModel().cost(sparse, chip).duration - 2'000'000;
  chip.compute.structured_sparsity.value = 2;
  EXPECT_EQ(CalibratedModel().cost(sparse, chip).duration - 2'000'000, dense / 2);
}

TEST(Roofline, ATileIsRefusedForItKnowsNone) {
  Kernel tiled = kernel(1_TFLOP, 0_B);
  tiled.tile = {128, 128};
  EXPECT_THROW(CalibratedModel().cost(tiled, accelerator(4)), config::ConfigError);
}

}  // namespace
}  // namespace orrery::roofline_test
