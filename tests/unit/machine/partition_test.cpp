// SPDX-License-Identifier: Apache-2.0
// Parts of a device: MIG instances of an H100.
#include "sim/machine/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::partition_test {
namespace {

using testing::HasSubstr;
using namespace literals;

AcceleratorConfig part(int units, int memory_slices, int all_slices = 8) {
  std::string messages;
  const auto accelerator =
      accelerator_of("{extends: h100_sxm, partition: {units: " + std::to_string(units) +
                         ", memory_slices: " + std::to_string(memory_slices) +
                         ", all_slices: " + std::to_string(all_slices) + "}}",
                     messages);
  EXPECT_EQ(messages, "");
  return accelerator;
}

std::string messages_of(const std::string& partition) {
  std::string messages;
  accelerator_of("{extends: h100_sxm, partition: " + partition + "}", messages);
  return messages;
}

// 989.4 x 16 / 132 = 119.93 TFLOP/s, 66.9 x 16 / 132 = 8.109; 3,350 / 8 = 418.75 GB/s, 81,559 MiB /
// 8, 50 MiB / 8; 700 W x 16 / 132 = 84.85 W.
TEST(Partition, ASmallInstanceHasItsShareOfEveryRate) {
  const AcceleratorConfig a = shipped_accelerator("h100_1g");
  EXPECT_EQ(a.compute.units.value, 16);
  EXPECT_NEAR(a.compute.matrix.at(Precision::kBf16).value.base(), 119.93e12, 0.01e12);
  EXPECT_NEAR(a.compute.matrix.at(Precision::kFp8).value.base(), 239.86e12, 0.01e12);
  EXPECT_NEAR(a.compute.vector.value.base(), 8.109e12, 0.001e12);
  EXPECT_NEAR(a.power.tdp.value.base(), 84.85, 0.01);
  EXPECT_DOUBLE_EQ(a.memory.bandwidth.value.base(), 418.75e9);
  EXPECT_DOUBLE_EQ(a.memory.capacity.value.base(), 81091.0 / 8 * 1048576);
  EXPECT_EQ(a.memory.capacity.published(), 10_GB);
  EXPECT_EQ(a.cache->capacity.value, 6.25_MiB);
  EXPECT_EQ(a.cache->bandwidth.value, 700_GBps);  // 5,600 / 8
}

// nvidia-smi mig -lgip: 3g.40gb has 60 SMs and half of the memory.
TEST(Partition, ALargeInstanceHasTheMemoryOfMoreSlicesThanUnits) {
  const AcceleratorConfig a = part(60, 4);
  EXPECT_NEAR(a.compute.matrix.at(Precision::kBf16).value.base(), 989.4e12 * 60 / 132, 1e6);
  EXPECT_DOUBLE_EQ(a.memory.bandwidth.value.base(), 1675e9);
}

// An eighth of each of the 5 stacks: 5 x 128 bit x 5.23 Gb/s / 8 = 418.4 GB/s.
TEST(Partition, AMemorySliceIsAnEqualPartOfEveryStack) {
  const MemoryConfig memory = shipped_accelerator("h100_1g").memory;
  EXPECT_EQ(memory.stacks->value, 5);
  EXPECT_EQ(memory.bus_width->value, 128);
  const double pins = static_cast<double>(memory.stacks->value) * memory.bus_width->value;
  EXPECT_NEAR(memory.data_rate->value.base() * pins, memory.bandwidth.value.base(), 0.5e9);
}

TEST(Partition, OneUnitTheClocksAndTheEnergiesStayThoseOfTheDevice) {
  const AcceleratorConfig whole = shipped_accelerator("h100_sxm"), a = part(16, 1);
  EXPECT_EQ(a.core->shared_memory.value, whole.core->shared_memory.value);
  EXPECT_EQ(a.core->shared_bandwidth.value, whole.core->shared_bandwidth.value);
  EXPECT_EQ(a.compute.clock.value, whole.compute.clock.value);
  EXPECT_EQ(a.energy.memory.value, whole.energy.memory.value);
  EXPECT_EQ(a.launch->host.value, whole.launch->host.value);
}

TEST(Partition, AProperPartHasNoScaleUpPorts) {
  EXPECT_FALSE(part(16, 1).scale_up.present());
  EXPECT_FALSE(part(132, 4).scale_up.present());
}

TEST(Partition, TheFullPartIsTheDevice) {
  const AcceleratorConfig whole = shipped_accelerator("h100_sxm"), full = part(132, 8);
  EXPECT_EQ(full.compute.units.value, whole.compute.units.value);
  for (const auto& [precision, rate] : whole.compute.matrix)
    EXPECT_EQ(full.compute.matrix.at(precision).value, rate.value);
  EXPECT_EQ(full.compute.vector.value, whole.compute.vector.value);
  EXPECT_EQ(full.compute.special->value, whole.compute.special->value);
  EXPECT_EQ(full.memory.capacity.value, whole.memory.capacity.value);
  EXPECT_EQ(full.memory.capacity.published(), whole.memory.capacity.published());
  EXPECT_EQ(full.memory.bandwidth.value, whole.memory.bandwidth.value);
  EXPECT_EQ(full.memory.bus_width->value, whole.memory.bus_width->value);
  EXPECT_EQ(full.cache->capacity.value, whole.cache->capacity.value);
  EXPECT_EQ(full.cache->bandwidth.value, whole.cache->bandwidth.value);
  EXPECT_EQ(full.power.tdp.value, whole.power.tdp.value);
  EXPECT_EQ(full.scale_up.links.value, whole.scale_up.links.value);
  EXPECT_EQ(full.scale_up.bandwidth.value, whole.scale_up.bandwidth.value);
  EXPECT_EQ(full.host_link.bandwidth.value, whole.host_link.bandwidth.value);
}

// The layouts that the MIG User Guide allows on an H100; SMs of 1g, 2g, 3g, 4g: 16, 32, 60, 64.
TEST(Partition, PartsAddUpToNoMoreThanTheDevice) {
  const AcceleratorConfig whole = shipped_accelerator("h100_sxm");
  const std::vector<std::vector<AcceleratorConfig>> layouts = {
      std::vector<AcceleratorConfig>(7, part(16, 1)),
      {part(32, 2), part(32, 2), part(32, 2), part(16, 1)},
      {part(64, 4), part(60, 4)},
      {part(60, 4), part(60, 4)}};
  for (const auto& layout : layouts) {
    FlopsPerSecond rate;
    Bytes capacity;
    BytesPerSecond bandwidth, cache, host;
    Watts power;
    for (const AcceleratorConfig& a : layout) {
      rate += a.compute.matrix.at(Precision::kBf16).value;
      capacity += a.memory.capacity.value;
      bandwidth += a.memory.bandwidth.value;
      cache += a.cache->bandwidth.value;
      host += a.host_link.bandwidth.value;
      power += a.power.tdp.value;
    }
    EXPECT_LE(rate, whole.compute.matrix.at(Precision::kBf16).value);
    EXPECT_LE(capacity, whole.memory.capacity.value);
    EXPECT_LE(bandwidth, whole.memory.bandwidth.value);
    EXPECT_LE(cache, whole.cache->bandwidth.value);
    EXPECT_LE(host, whole.host_link.bandwidth.value);
    EXPECT_LE(power, whole.power.tdp.value);
  }
}

TEST(Partition, APartIsNoLargerThanTheDevice) {
  EXPECT_THAT(messages_of("{units: 133, memory_slices: 8, all_slices: 8}"),
              HasSubstr("no more units than the device: 133 of 132"));
  EXPECT_THAT(messages_of("{units: 16, memory_slices: 9, all_slices: 8}"),
              HasSubstr("no more memory slices"));
}

TEST(Partition, APackageOfSeveralRanksHasNoParts) {
  std::string messages;
  accelerator_of("{extends: ascend_910c, partition: {units: 24, memory_slices: 1, all_slices: 2}}",
                 messages);
  EXPECT_THAT(messages, HasSubstr("several dies has no parts"));
}

}  // namespace
}  // namespace orrery::partition_test
