// SPDX-License-Identifier: Apache-2.0
// What clusters, parts of the L2 and asynchronous copies do to products, with priors alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/tiles/matrix_product.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::machine_parts_test {
namespace {

using testing::HasSubstr;
using namespace literals;

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t cluster = 0) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.cluster = cluster;
  const auto dm = static_cast<double>(m), dn = static_cast<double>(n), dk = static_cast<double>(k);
  kernel.matrix_flops = Flops(2 * dm * dn * dk);
  kernel.read = Bytes(2 * (dm * dk + dn * dk));
  kernel.written = Bytes(2 * dm * dn);
  return kernel;
}

double time_us(const Kernel& kernel, const AcceleratorConfig& on) {
  const KernelFamily& family = tile_family(kernel.kind);
  const std::vector<double> priors = family.priors(on, kernel.precision);
  return family.time(kernel, on, priors.data()).total_us;
}

AcceleratorConfig h100() { return shipped_accelerator("h100_sxm"); }

double units_for(std::int64_t cluster) {
  return tile_device(h100(), product(4096, 4096, 4096, cluster)).units;
}

// GPCs of 14, 4 x 16 and 3 x 18 SMs. Two divides them all. Four: 12 + 4 x 16 + 3 x 16. Eight: 8 +
// 7 x 16, the 120 that were seen. Sixteen: none of the 14.
TEST(Clusters, FillOfEachGroupWhatTheirSizeDivides) {
  EXPECT_EQ(units_for(0), 132);
  EXPECT_EQ(units_for(1), 132);
  EXPECT_EQ(units_for(2), 132);
  EXPECT_EQ(units_for(4), 124);
  EXPECT_EQ(units_for(8), 120);
  EXPECT_EQ(units_for(16), 112);
}

TEST(Clusters, WithoutGroupsNothingIsLost) {
  AcceleratorConfig device = h100();
  device.core->groups.reset();
  EXPECT_EQ(tile_device(device, product(64, 64, 64, 16)).units, 132);
}

TEST(Clusters, AUnitDoesNotComputeFasterBecauseOthersAreEmpty) {
  const TileDevice all = tile_device(h100(), product(64, 64, 64, 2));
  const TileDevice some = tile_device(h100(), product(64, 64, 64, 8));
  EXPECT_DOUBLE_EQ(some.rate / some.units, all.rate / all.units);
  EXPECT_EQ(some.vector_rate, all.vector_rate);
}

// Tiles of 128 x 256 over 1024 columns: four for every 128 rows.
TEST(Clusters, WhatTheyCannotFillTakesAnotherWave) {
  const auto tiles = [](std::int64_t count, std::int64_t cluster) {
    Kernel kernel = product(count / 4 * 128, 1024, 16384, cluster);
    kernel.tile = {128, 256};
    std::vector<double> whole = tile_family(KernelClass::kGemm).priors(h100(), Precision::kBf16);
    whole[11] = 1;  // a last wave counts as a full one
    return tile_family(KernelClass::kGemm).time(kernel, h100(), whole.data()).total_us;
  };
  EXPECT_LT(tiles(132, 2), 1.2 * tiles(120, 2));
  EXPECT_LT(tiles(120, 8), 1.2 * tiles(100, 8));
  EXPECT_GT(tiles(124, 8), 1.7 * tiles(120, 8));
}

TEST(Clusters, BlocksAreDealtOutToTheUnitsThatClustersFill) {
  const Kernel kernel = product(4096, 4096, 4096, 8);
  const KernelFamily& family = tile_family(KernelClass::kGemm);
  const std::vector<double> priors = family.priors(h100(), Precision::kBf16);
  EXPECT_EQ(family.blocks(kernel, h100(), priors.data())->machine.units, 120);
}

// r x c blocks read rows once for c of them and columns once for r: 1 x 1, 1 x 2, 2 x 2, 2 x 4.
TEST(Clusters, LargerOnesReadTheCacheLess) {
  EXPECT_DOUBLE_EQ(multicast_of(1), 1);
  EXPECT_DOUBLE_EQ(multicast_of(2), 2 / 1.5);
  EXPECT_DOUBLE_EQ(multicast_of(4), 2);
  EXPECT_DOUBLE_EQ(multicast_of(8), 2 / 0.75);
  EXPECT_DOUBLE_EQ(multicast_of(16), 4);
}

TEST(Clusters, ThatADeviceDoesNotHaveAreRefused) {
  const auto fault = [](const char* device, std::int64_t cluster) -> std::string {
    try {
      time_us(product(64, 64, 64, cluster), shipped_accelerator(device));
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(fault("h100_sxm", 32), HasSubstr("clusters of up to 16 blocks, not 32"));
  EXPECT_THAT(fault("a100_sxm", 2), HasSubstr("clusters of up to 1 blocks, not 2"));
  EXPECT_EQ(fault("h100_sxm", 16), "");
  EXPECT_THROW(CalibratedModel().cost(product(64, 64, 64, 2), h100()), config::ConfigError);
}

TEST(UnitGroups, HaveAllUnitsOfTheDevice) {
  std::string messages;
  accelerator_of("{extends: h100_sxm, core: {groups: {sizes: [66, 60], source: x}}}", messages);
  EXPECT_THAT(messages, HasSubstr("the groups must have all units: 126 of 132"));
  // A what-if of the units keeps the shares of the groups.
  const auto larger = accelerator_of("{extends: h100_sxm, compute: {units: 264}}", messages);
  EXPECT_EQ(messages, "");
  EXPECT_EQ(tile_device(larger, product(64, 64, 64, 8)).units, 240);
}

AcceleratorConfig parts(int partitions, BytesPerSecond far, Seconds latency, bool duplicated) {
  AcceleratorConfig device = h100();
  device.cache->partitions.value = partitions;
  device.cache->far_bandwidth = Fact<BytesPerSecond>{.value = far};
  device.cache->far_latency.value = latency;
  device.cache->duplicated.value = duplicated;
  return device;
}

// Half of the reads cross: twice what the way carries. 5,120 B/clk x 1.83 GHz are 9.37 TB/s.
TEST(CacheParts, OfTwoEveryOtherReadCrosses) {
  EXPECT_DOUBLE_EQ(cache_rate(parts(2, 2_TBps, Seconds(0), false)), 4e6);
  EXPECT_DOUBLE_EQ(cache_rate(parts(4, 3_TBps, Seconds(0), false)), 4e6);
  EXPECT_DOUBLE_EQ(cache_rate(parts(1, 2_TBps, Seconds(0), false)), 5120 * 1830.0);
  EXPECT_DOUBLE_EQ(cache_rate(parts(2, 8_TBps, Seconds(0), false)), 5120 * 1830.0);
}

TEST(CacheParts, CopiesAreReadNearby) {
  EXPECT_DOUBLE_EQ(cache_rate(parts(2, 2_TBps, Seconds(0), true)), 5120 * 1830.0);
}

TEST(CacheParts, WhatComesFromTheMemoryCrossesOnceWhereverItIsKept) {
  for (const bool duplicated : {false, true}) {
    const auto device = parts(2, 1_TBps, Seconds(0), duplicated);
    EXPECT_DOUBLE_EQ(tile_device(device, product(64, 64, 64)).memory, 2e6);
  }
}

TEST(CacheParts, MoreOfThemOrASlowerWayNeverSpeedUp) {
  for (const Kernel& kernel : {product(1, 4096, 4096), product(64, 8192, 1024),
                               product(4096, 4096, 512), product(8192, 8192, 8192)}) {
    for (const bool duplicated : {false, true}) {
      double before = 0;
      for (const int count : {1, 2, 3, 4, 8}) {
        const double now = time_us(kernel, parts(count, 1.5_TBps, Seconds(1e-7), duplicated));
        EXPECT_GE(now, before) << kernel.m << ": " << count;
        before = now;
      }
      const double base = time_us(kernel, parts(2, 1.5_TBps, Seconds(1e-7), duplicated));
      EXPECT_GE(time_us(kernel, parts(2, 0.8_TBps, Seconds(1e-7), duplicated)), base);
      EXPECT_GE(time_us(kernel, parts(2, 1.5_TBps, Seconds(5e-7), duplicated)), base);
    }
  }
}

TEST(CacheParts, ASlowWayHoldsUpProductsThatTheCacheFeeds) {
  // 64-wide sums: 8192 x 8192 results are bound by loads, not by instructions.
  const Kernel kernel = product(8192, 8192, 8192);
  EXPECT_GT(time_us(kernel, parts(2, 0.5_TBps, Seconds(0), false)),
            1.5 * time_us(kernel, parts(1, 0.5_TBps, Seconds(0), false)));
}

// Fits have the far hits of the device in them: only a change of them counts.
TEST(CacheParts, AFitIsMovedByWhatChanges) {
  const KernelFamily& family = tile_family(KernelClass::kGemm);
  const std::vector<double> fitted = family.priors(h100(), Precision::kBf16);
  EXPECT_EQ(family.transferred(fitted, h100(), h100(), Precision::kBf16), fitted);
  AcceleratorConfig slower = h100();
  slower.cache->far_latency.value = Seconds(240e-9);  // 200 ns more for every other read
  const auto moved = family.transferred(fitted, h100(), slower, Precision::kBf16);
  const std::size_t fill = parameter_index(family, "fill");
  EXPECT_NEAR(moved[fill], fitted[fill] + 0.1, 1e-12);
  AcceleratorConfig single = h100();
  single.cache->duplicated.value = false;
  const std::size_t share = parameter_index(family, "cache_share");
  EXPECT_NEAR(family.transferred(fitted, h100(), single, Precision::kBf16)[share],
              2 * fitted[share], 1e-12);
}

AcceleratorConfig without_async_copy(AcceleratorConfig device, int blocks = 32) {
  device.core->async_copy.value = false;
  device.core->max_blocks.value = blocks;
  return device;
}

TEST(AsyncCopy, NeverSlows) {
  for (const char* name : {"a100_sxm", "h100_sxm", "b200_sxm", "ascend_910c", "tpu_v5p"}) {
    const AcceleratorConfig with = shipped_accelerator(name);
    for (const int blocks : {1, 2, 32}) {
      const AcceleratorConfig without = without_async_copy(with, blocks);
      for (const std::int64_t m : {1, 64, 200, 1024, 8192})
        for (const std::int64_t n : {512, 4096, 14336})
          for (const std::int64_t k : {256, 4096}) {
            const Kernel kernel = product(m, n, k);
            EXPECT_LE(time_us(kernel, with), time_us(kernel, without))
                << name << " " << blocks << ": " << m << " " << n << " " << k;
            Kernel experts = kernel;
            experts.kind = KernelClass::kGroupedGemm;
            experts.batch = 8;
            EXPECT_LE(time_us(experts, with), time_us(experts, without))
                << name << " " << blocks << ": experts " << m << " " << n << " " << k;
          }
    }
  }
}

// A step takes 128 x 128 x 64 operations of one unit; loads and latency come on top when nothing
// hides them.
TEST(AsyncCopy, WithoutItABlockAloneLoadsAndThenComputes) {
  LoadHiding alone{false, INFINITY, INFINITY, false, 1};
  EXPECT_EQ(alone.step_us(3.2, 3 + 2 + 1, alone.resident(1, 1, 100)), 6);
  LoadHiding async = alone;
  async.async_copy = true;
  EXPECT_EQ(async.step_us(3.2, 3 + 2 + 1, async.resident(1, 1, 100)), 3.2);
}

TEST(AsyncCopy, BlocksEnoughHideAllLoads) {
  LoadHiding many{false, INFINITY, INFINITY, false, 1e9};
  EXPECT_EQ(many.step_us(3.2, 3 + 2 + 1, many.resident(1, 1, 100)), 3.2);
  // As many as the unit has work for, and room.
  EXPECT_EQ(many.resident(1, 1, 2.5), 2);
  many.shared = 96 * 1024;
  many.results = 128 * 1024;
  EXPECT_EQ(many.resident(32 * 1024, 16384, 100), 2);  // 64 KiB of results each
  EXPECT_EQ(many.resident(48 * 1024, 4096, 100), 2);
  EXPECT_EQ(many.resident(200 * 1024, 4096, 100), 1);
  many.together = true;
  EXPECT_EQ(many.resident(16 * 1024, 4096, 100), 3);  // 16 + 16 KiB each
}

TEST(AsyncCopy, ADeviceWithoutItWantsResidentBlocks) {
  const AcceleratorConfig v100 = shipped_accelerator("v100_sxm");
  ASSERT_FALSE(v100.core->async_copy.value);
  Kernel kernel = product(8192, 8192, 8192);
  kernel.precision = Precision::kFp16;
  AcceleratorConfig async = v100;
  async.core->async_copy.value = true;
  const double hidden = time_us(kernel, async);
  // An element of depth of 128 x 128 results is 32 clk of instructions; to load it 1.3, to step 1.
  EXPECT_GT(time_us(kernel, without_async_copy(v100, 1)), 1.05 * hidden);
  EXPECT_LT(time_us(kernel, v100), 1.02 * hidden);
}

// Tiles that wait for their loads wait where they are played, too.
TEST(AsyncCopy, TilesAgreeWithTheClosedForm) {
  const AcceleratorConfig alone = without_async_copy(h100(), 1);
  const KernelFamily& family = tile_family(KernelClass::kGemm);
  const std::vector<double> priors = family.priors(alone, Precision::kBf16);
  const Kernel kernel = product(8192, 8192, 8192);
  const auto plan = family.blocks(kernel, alone, priors.data());
  const BlockSchedule played = play_blocks(plan->kinds, plan->launch, plan->machine, plan->repeats);
  const double tiles = plan->launch_us + plan->extra_us + plan->scale * played.duration_us;
  EXPECT_NEAR(tiles / family.time(kernel, alone, priors.data()).total_us, 1, 0.05);
}

AcceleratorConfig engines(int count, int directions, BytesPerSecond bandwidth) {
  AcceleratorConfig device = h100();
  device.copy_engines = CopyEngineConfig{};
  device.copy_engines->count.value = count;
  device.copy_engines->directions.value = directions;
  device.copy_engines->bandwidth.value = bandwidth;
  return device;
}

Kernel copy(std::int64_t copies, bool host) {
  Kernel kernel;
  kernel.kind = KernelClass::kCopy;
  kernel.batch = copies;
  kernel.written = 1_GB * static_cast<double>(copies);
  (host ? kernel.host : kernel.read) = kernel.written;
  return kernel;
}

double seconds(const Kernel& kernel, const AcceleratorConfig& on) {
  const KernelCost cost = CalibratedModel().cost(kernel, on);
  return to_seconds(cost.duration - cost.launch).base();
}

// 1 GB at 100 GB/s: 10 ms. Two engines take two copies in that, and two more after them.
TEST(CopyEngines, EachTakesOneCopyAfterTheOther) {
  const AcceleratorConfig two = engines(2, 1, 100_GBps);
  EXPECT_NEAR(seconds(copy(1, false), two), 0.01, 1e-9);
  EXPECT_NEAR(seconds(copy(2, false), two), 0.01, 1e-9);
  EXPECT_NEAR(seconds(copy(3, false), two), 0.02, 1e-9);
  EXPECT_NEAR(seconds(copy(4, false), two), 0.02, 1e-9);
  EXPECT_EQ(CalibratedModel().cost(copy(1, false), two).bound, Bound::kEngine);
}

TEST(CopyEngines, OfOtherDirectionsDoNotHelp) {
  EXPECT_NEAR(seconds(copy(2, false), engines(3, 3, 100_GBps)), 0.02, 1e-9);
  EXPECT_NEAR(seconds(copy(2, false), engines(6, 3, 100_GBps)), 0.01, 1e-9);
  EXPECT_NEAR(seconds(copy(1, false), engines(2, 3, 100_GBps)), 0.01, 1e-9);
}

// 55 GB/s of PCIe, whatever the engines.
TEST(CopyEngines, ShareTheLinkToTheHost) {
  const double one = seconds(copy(1, true), engines(8, 1, 100_GBps));
  EXPECT_NEAR(one, 1 / 55.0, 1e-4);
  EXPECT_NEAR(seconds(copy(4, true), engines(8, 1, 100_GBps)), 4 * one, 1e-4);
}

TEST(CopyEngines, MoreOrFasterOnesNeverSlow) {
  for (const bool host : {false, true})
    for (const std::int64_t copies : {1, 2, 3, 5, 8}) {
      double before = INFINITY;
      for (const int count : {1, 2, 3, 4, 8, 64}) {
        const double now = seconds(copy(copies, host), engines(count, 1, 100_GBps));
        EXPECT_LE(now, before) << copies << " on " << count;
        before = now;
      }
      EXPECT_LE(seconds(copy(copies, host), engines(64, 1, 200_GBps)), before);
    }
}

TEST(CopyEngines, AKernelOnTheUnitsNeedsNone) {
  Kernel kernel = copy(1, false);
  kernel.kind = KernelClass::kElementwise;
  EXPECT_LT(seconds(kernel, engines(1, 1, 100_GBps)), 0.002);
}

}  // namespace
}  // namespace orrery::machine_parts_test
