// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/limits.h"

#include <gtest/gtest.h>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::limits_test {
namespace {

AcceleratorConfig h200() { return shipped_accelerator("h200_sxm"); }

/// A kernel that takes `us` of which launching is one, with what the model says of its traffic.
Limit limit_of(const Kernel& kernel, double us, KernelCost cost = {}) {
  cost.duration = to_picoseconds(Seconds(us * 1e-6));
  cost.launch = to_picoseconds(Seconds(1e-6));
  return limit_of(kernel, cost, h200());
}

// 4 GB on an H200: 4.8 TB/s of HBM take 833 us, 5.6 TB/s of L2 714 us.
TEST(Limits, TheNearestIsTheBound) {
  Kernel kernel;
  kernel.kind = KernelClass::kElementwise;
  kernel.read = Bytes(4e9);
  kernel.vector_flops = Flops(1e9);
  const AcceleratorConfig on = h200();
  const double memory = 4e9 / on.memory.bandwidth.value.base();
  EXPECT_EQ(limit_of(kernel, 1000).bound, Bound::kMemory);
  EXPECT_DOUBLE_EQ(limit_of(kernel, 1000).time.base(), memory);
  kernel.vector_flops = Flops(0.9e-3 * on.compute.vector.value.base());
  EXPECT_EQ(limit_of(kernel, 1000).bound, Bound::kVector);
  kernel.vector_flops = Flops();
  kernel.exponentials = Flops(0.95e-3 * on.compute.special->value.base());
  EXPECT_EQ(limit_of(kernel, 1000).bound, Bound::kVector);
  EXPECT_NEAR(limit_of(kernel, 1000).time.base(), 0.95e-3, 1e-9);
}

TEST(Limits, WhereNothingIsBusyLatencyIsTheBound) {
  Kernel kernel;
  kernel.read = Bytes(4e9);
  EXPECT_EQ(limit_of(kernel, 3000).bound, Bound::kMemory);
  EXPECT_EQ(limit_of(kernel, 4000).bound, Bound::kLatency);  // 0.21 of the bandwidth
  EXPECT_GT(limit_of(kernel, 4000).time.base(), 0.8e-3);
  kernel.read = Bytes(4e6);
  EXPECT_EQ(limit_of(kernel, 1.9).bound, Bound::kLatency);  // mostly launch
}

// Operands that stayed in the L2 do not count at the memory, those that tiles read again do at the
// L2, each for what it can give in that time at most.
TEST(Limits, WhatTheModelSaysOfTheTrafficCounts) {
  Kernel kernel;
  kernel.read = Bytes(40e6);  // fits
  KernelCost cost;
  cost.memory = Bytes();
  cost.cache = Bytes(2e9);
  EXPECT_EQ(limit_of(kernel, 400, cost).bound, Bound::kCache);
  const AcceleratorConfig on = h200();
  EXPECT_DOUBLE_EQ(limit_of(kernel, 400, cost).time.base(), 2e9 / on.cache->bandwidth.value.base());
  cost.cache = Bytes(1e12);
  EXPECT_NEAR(limit_of(kernel, 400, cost).time.base(), 400e-6, 1e-12);
}

// 64 MB and 16 MB more than an L2 of 48 MB holds.
TEST(Limits, AKernelTakesAtLeastWhatTheL2CannotHold) {
  AcceleratorConfig on = h200();
  on.cache->capacity.value = Bytes(48e6);
  on.cache->bandwidth.value = BytesPerSecond(1e15);
  on.memory.bandwidth.value = BytesPerSecond(4e12);
  Kernel kernel;
  kernel.kind = KernelClass::kElementwise;
  kernel.read = Bytes(64e6);
  EXPECT_NEAR(least_time(kernel, on).base(), 4e-6, 1e-12);
  kernel.read = Bytes(40e6);
  EXPECT_NEAR(least_time(kernel, on).base(), 40e6 / 1e15, 1e-12);
  on.cache->bandwidth.value = BytesPerSecond(5e12);
  EXPECT_NEAR(least_time(kernel, on).base(), 8e-6, 1e-12);
}

}  // namespace
}  // namespace orrery::limits_test
