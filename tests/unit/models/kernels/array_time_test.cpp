// SPDX-License-Identifier: Apache-2.0
// Systolic arrays by hand: tiles of weights, inputs that stream past them, and what stays idle.
#include "models/kernels/device/array_time.h"

#include <gtest/gtest.h>

#include <vector>

#include "models/kernels/calibrated_model.h"
#include "sim/config/load.h"
#include "sim/machine/kernel_model.h"

namespace orrery::array_time_test {
namespace {

using namespace literals;

/// Four units with an array of 128 x 128 each, that takes weights in 128 clocks and is filled in
/// 256.
ComputeConfig four_arrays() {
  ComputeConfig compute;
  compute.units.value = 4;
  compute.arrays.emplace();
  compute.arrays->per_unit.value = 1;
  compute.arrays->rows.value = 128;
  compute.arrays->columns.value = 128;
  compute.arrays->load.value = 128;
  compute.arrays->fill.value = 256;
  return compute;
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  return kernel;
}

/// At 1 GHz: a rate of four times 128 x 128 multiply-adds in bf16, and half of it in fp32.
AcceleratorConfig device() {
  AcceleratorConfig a;
  a.compute = four_arrays();
  a.compute.clock.value = 1_GHz;
  a.compute.matrix[Precision::kBf16].value = FlopsPerSecond(4 * 2 * 128 * 128 * 1e9);
  a.compute.matrix[Precision::kFp32].value = FlopsPerSecond(4 * 128 * 128 * 1e9);
  a.compute.matrix_per_clock[Precision::kBf16].value = 2 * 128 * 128;
  return a;
}

/// Share of the multiply-adds that work.
double use(const Kernel& kernel) {
  return (multiply_add_flops(kernel) / matrix_peak(device(), Precision::kBf16)) /
         array_time(kernel, device());
}

double clocks(const Kernel& kernel, double count = 4) {
  return array_clocks(kernel, *four_arrays().arrays, count);
}

TEST(Arrays, TakeAClockForEachInputOfEachTile) {
  EXPECT_EQ(clocks(product(4096, 256, 256)), 4096 + 256);      // a tile on each
  EXPECT_EQ(clocks(product(4096, 512, 256)), 2 * 4096 + 256);  // two
  EXPECT_EQ(clocks(product(4096, 256, 256), 1), 4 * 4096 + 256);
}

TEST(Arrays, DealInputsOutWhereTilesAreFewerThanArrays) {
  EXPECT_EQ(clocks(product(4096, 128, 128)), 1024 + 256);
}

// Three tiles in four parts of 1,024 inputs each are three rounds; undivided they are one of 4,096.
TEST(Arrays, DealInputsOutAsTakesTheLeastTime) {
  EXPECT_EQ(clocks(product(4096, 384, 128)), 3 * 1024 + 256);
}

TEST(Arrays, WaitForWeightsWhereInputsAreFew) {
  EXPECT_EQ(clocks(product(1, 1024, 1024)), 16 * 128 + 256);
}

TEST(Arrays, LeaveTheRestOfATileIdle) {
  EXPECT_EQ(clocks(product(4096, 129, 129)), clocks(product(4096, 256, 256)));
  EXPECT_NEAR(use(product(1 << 20, 129, 129)), 129.0 * 129 / 256 / 256, 1e-3);
}

// Two copies of 64 x 64 lie on the diagonal of an array, each for half of the inputs.
TEST(Arrays, HoldSmallWeightsSeveralTimes) {
  EXPECT_EQ(clocks(product(8192, 64, 64)), 1024 + 256);
  EXPECT_EQ(clocks(product(8192, 65, 64)), 2048 + 256);
}

// 14 filters of nine inputs lie on the diagonal of an array, so that 56 channels are 4 tiles: 9 of
// 128 x 128 multiply-adds work for each.
TEST(Arrays, HoldFiltersOfSeveralGroupsBesideEachOther) {
  Kernel depthwise = product(4096, 1, 9, 56);
  depthwise.kind = KernelClass::kConvolution;
  EXPECT_EQ(clocks(depthwise), 4096 + 256);
  EXPECT_NEAR(use(depthwise), 14 * 9.0 / 128 / 128, 1e-3);
}

TEST(Arrays, AreNeverMoreThanBusy) {
  for (const std::int64_t m : {1, 7, 128, 4096})
    for (const std::int64_t n : {1, 16, 64, 129, 1000})
      for (const std::int64_t k : {1, 9, 128, 147, 4608})
        for (const std::int64_t batch : {1, 3, 96}) {
          const double busy = use(product(m, n, k, batch));
          EXPECT_GT(busy, 0);
          EXPECT_LE(busy, 1) << m << " x " << n << " x " << k << ", " << batch;
        }
}

TEST(Arrays, OfADieAreItsShare) {
  AcceleratorConfig two_dies = device();
  two_dies.dies = 2;
  const Kernel kernel = product(4096, 256, 256);  // four tiles on two arrays
  EXPECT_NEAR(array_time(kernel, two_dies).base(), (2 * 4096 + 256) * 1e-9, 1e-12);
}

TEST(Arrays, TakeTwiceAsLongWhereTheRateIsHalf) {
  Kernel kernel = product(4096, 256, 256);
  kernel.precision = Precision::kBf16;
  EXPECT_NEAR(array_time(kernel, device()).base(), (4096 + 256) * 1e-9, 1e-15);
  kernel.precision = Precision::kFp32;
  EXPECT_NEAR(array_time(kernel, device()).base(), 2 * (4096 + 256) * 1e-9, 1e-15);
}

// Layers of one and of two tiles, 100,000 inputs each. In time: 25,256 and 50,256 clocks on all
// four arrays. In space the second has two arrays and the first one too many: both take 100,256
// clocks or less on their own, the slowest 100,256, of which each counts its arrays' share.
TEST(Arrays, MappedInSpaceWaitForTheSlowestLayer) {
  std::vector<Kernel> layers = {product(100000, 128, 128), product(100000, 256, 128)};
  map_in_space(four_arrays(), layers);
  const double one = 25256 / layers[0].rate, two = 50256 / layers[1].rate;
  // The first gets one array, the second two, and what is left goes to the first that is slowest.
  EXPECT_NEAR(one + two, 100256, 1);
  EXPECT_NEAR(one / two, 1, 1e-9);
}

TEST(Arrays, MappedInSpaceRunMoreLayersThanThereAreInParts) {
  std::vector<Kernel> layers(8, product(100000, 128, 128));
  map_in_space(four_arrays(), layers);
  double all = 0;
  for (const Kernel& layer : layers) all += 25256 / layer.rate;
  EXPECT_NEAR(all, 2 * 100256, 1);  // two contexts
}

// A filter of nine weights leaves 14 * 9 of 128 * 128 places at work, and the arrays are what a
// kernel of such filters waits for all the same.
TEST(Arrays, ThatAreMostlyIdleBoundAKernelAsTensorUnits) {
  const config::Library& library = config::default_library();
  const auto hailo = config::load<AcceleratorConfig>(library.locate("accelerators", "hailo_8", ""),
                                                     library, "accelerators");
  Kernel depthwise = product(112 * 112, 1, 9, 96);
  depthwise.kind = KernelClass::kConvolution;
  depthwise.precision = Precision::kInt8;
  depthwise.vector_flops = multiply_add_flops(depthwise);
  depthwise.read = depthwise.written = Bytes(112.0 * 112 * 96);
  EXPECT_EQ(CalibratedModel().cost(depthwise, hailo).bound, Bound::kTensor);
}

TEST(Arrays, MappedInSpaceLeaveOtherKernelsAlone) {
  std::vector<Kernel> layers = {product(100000, 128, 128), Kernel()};
  map_in_space(four_arrays(), layers);
  EXPECT_EQ(layers[1].rate, 1);
}

}  // namespace
}  // namespace orrery::array_time_test
