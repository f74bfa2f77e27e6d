// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/dram.h"

#include <gtest/gtest.h>

#include <memory>

#include "models/kernels/device/roofline.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::dram_test {
namespace {

// H200: a burst of 32 B on 32 pins of 6.25 Gb/s takes 1.28 ns; two clocks 1.28 ns. A turn both ways
// idles 4 + 12.5 + 1.28 ns for 64 bursts of 81.92 ns: 0.217. Refresh 0.115 x 200/350 = 0.0657.
TEST(Dram, TimingsAndOrganisationGiveTheLosses) {
  const DramEfficiency h200 = *dram_efficiency(shipped_accelerator("h200_sxm").memory);
  EXPECT_NEAR(h200.turnaround, 17.78 / 81.92, 1e-4);
  EXPECT_NEAR(h200.read, 1 - 0.115 * 4 / 7, 1e-6);
  EXPECT_EQ(h200.write_cost, 0);
  // HBM2e: 32 B on 64 pins of 3.19 Gb/s, 1.254 ns; two clocks 2.508 ns: 19.01 / 80.25.
  EXPECT_NEAR(dram_efficiency(shipped_accelerator("a100_sxm").memory)->turnaround, 19.008 / 80.25,
              1e-3);
  // LPDDR4X: 16 pins of 4.266 Gb/s, 3.75 ns.
  EXPECT_NEAR(dram_efficiency(shipped_accelerator("iphone_11").memory)->turnaround, 18.375 / 240.05,
              1e-3);
}

// Reads alone, two reads a write and copies: 4.5, 4.15 and 4.0 of 4.8 TB/s are expected of an H200.
// Not measured here, and the length of the queue was chosen with them in view.
TEST(Dram, MixedStreamsOfAnH200AreNearWhatIsExpected) {
  const DramEfficiency h200 = *dram_efficiency(shipped_accelerator("h200_sxm").memory);
  EXPECT_NEAR(4.8 * h200.stream(1), 4.5, 0.03 * 4.5);
  EXPECT_NEAR(4.8 * h200.stream(2.0 / 3), 4.15, 0.03 * 4.15);
  EXPECT_NEAR(4.8 * h200.stream(0.5), 4.0, 0.03 * 4.0);
}

TEST(Dram, MixedStreamsAreSlowestWhenHalfIsWritten) {
  const DramEfficiency h200 = *dram_efficiency(shipped_accelerator("h200_sxm").memory);
  for (double reads = 0; reads < 0.5; reads += 0.1)
    EXPECT_GT(h200.stream(reads), h200.stream(reads + 0.1));
  for (double reads = 0.5; reads < 0.95; reads += 0.1)
    EXPECT_LT(h200.stream(reads), h200.stream(reads + 0.1));
}

// 32 of 64 fetched bytes; tFAW allows a row each 3.75 ns, 64 B take 2.56 ns, 256 B 10.24 ns.
TEST(Dram, SmallPiecesWasteFetchesAndRows) {
  const MemoryConfig memory = shipped_accelerator("h200_sxm").memory;
  const double read = dram_efficiency(memory)->read;
  EXPECT_NEAR(*random_read_efficiency(memory, Bytes(32)), read * 1.28 / 3.75, 1e-6);
  EXPECT_NEAR(*random_read_efficiency(memory, Bytes(64)), read * 2.56 / 3.75, 1e-6);
  EXPECT_NEAR(*random_read_efficiency(memory, Bytes(96)), read * 0.75, 1e-6);
  EXPECT_NEAR(*random_read_efficiency(memory, Bytes(256)), read, 1e-6);
}

TEST(Dram, WithoutAnOrganisationNothingIsSaid) {
  EXPECT_FALSE(dram_efficiency(shipped_accelerator("stm32f746").memory));  // SRAM
  MemoryConfig memory = shipped_accelerator("h200_sxm").memory;
  memory.stacks.reset();
  EXPECT_FALSE(dram_efficiency(memory));
  EXPECT_FALSE(random_read_efficiency(memory, Bytes(64)));
}

TEST(Dram, AnotherBandwidthHasTheLossesOfThePartAsSold) {
  MemoryConfig memory = shipped_accelerator("h200_sxm").memory;
  const double before = dram_efficiency(memory)->stream(0.5);
  memory.sold = std::make_shared<MemoryConfig>(memory);
  memory.stacks.reset();
  EXPECT_DOUBLE_EQ(dram_efficiency(memory)->stream(0.5), before);
}

TEST(Dram, PriorsKeepWhatKernelsReachInCopiesAndGainInReads) {
  const AcceleratorConfig a = shipped_accelerator("v100_sxm");
  const auto at = [](RooflineParameter p) { return static_cast<std::size_t>(p); };
  const std::vector<double> priors = RooflineFamily().priors(a, Precision::kFp16);
  const double reads = priors[at(RooflineParameter::kMemoryEfficiency)];
  const double turnaround = priors[at(RooflineParameter::kTurnaround)];
  EXPECT_GT(reads, a.kernel.memory_efficiency.value);
  EXPECT_LE(reads, dram_efficiency(a.memory)->read);
  EXPECT_NEAR(reads / (1 + turnaround / 2), a.kernel.memory_efficiency.value, 1e-9);
}

TEST(Dram, MoreRefreshLeavesLessForReads) {
  AcceleratorConfig a = shipped_accelerator("h200_sxm");
  a.memory.refresh.value = 0.4;
  const std::vector<double> priors = RooflineFamily().priors(a, Precision::kBf16);
  EXPECT_LT(dram_efficiency(a.memory)->read,
            dram_efficiency(shipped_accelerator("h200_sxm").memory)->read);
  EXPECT_LE(priors[static_cast<std::size_t>(RooflineParameter::kMemoryEfficiency)],
            a.kernel.memory_efficiency.value);
}

}  // namespace
}  // namespace orrery::dram_test
