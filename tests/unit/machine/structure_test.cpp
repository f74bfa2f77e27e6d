// SPDX-License-Identifier: Apache-2.0
// What units, caches and memories are made of, and that their figures fit together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::structure_test {
namespace {

using testing::HasSubstr;
using namespace literals;

// Rules of what a file describes; what it leaves out is pinned by WhatIsNotKnownIsAbsent.
class Structures : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Library, Structures,
                         testing::ValuesIn(shipped_library().names("accelerators")),
                         [](const auto& test) { return test.param; });

// By which figures of one file may differ that are the same: their last printed digit.
constexpr double kAgree = 0.005;

struct PerClock {
  const char* name;
  Precision precision;
  double flops;  // per clock and unit
};

// Dense FLOP per clock and unit. NVIDIA: tensor cores of an SM x multiply-adds x 2, from the white
// papers (V100: 8 x 64, A100: 4 x 256, H100: 4 x 512, Blackwell: 4 x 1,024, graphics Blackwell: 4 x
// 128, H20: 4 x 128). AMD: 4 matrix cores a CU of 256 (CDNA 3) and 512 (CDNA 4) multiply-adds.
// Ascend: one cube of 16 x 16 x 16. TPU: 4 systolic arrays of 128 x 128, since v6e of 256 x 256.
// Trainium2: one of 128 x 128, Gaudi 3: one of 256 x 256. A13: 256 multiply-adds a core (what its
// estimate of the clock rests on). Cortex-M7: two multiply-adds. Rubin: 32,768 multiply-adds of
// NVFP4.
TEST(Structure, UnitsAndClockGiveTheMatrixPeak) {
  const std::vector<PerClock> rates = {{"v100_sxm", Precision::kFp16, 1024},
                                       {"a100_sxm", Precision::kBf16, 2048},
                                       {"a100_sxm_40", Precision::kInt8, 4096},
                                       {"h100_sxm", Precision::kBf16, 4096},
                                       {"h100_sxm", Precision::kFp8, 8192},
                                       {"h800_sxm", Precision::kBf16, 4096},
                                       {"h20", Precision::kBf16, 1024},
                                       {"h20", Precision::kFp8, 2048},
                                       {"h200_sxm", Precision::kBf16, 4096},
                                       {"h100_1g", Precision::kBf16, 4096},
                                       {"b200_sxm", Precision::kBf16, 8192},
                                       {"b200_sxm", Precision::kNvfp4, 32768},
                                       {"gb200", Precision::kBf16, 8192},
                                       {"b300_sxm", Precision::kFp8, 16384},
                                       {"b300_sxm", Precision::kNvfp4, 49152},
                                       {"gb300", Precision::kBf16, 8192},
                                       {"gb300", Precision::kNvfp4, 49152},
                                       {"rubin_r200", Precision::kNvfp4, 65536},
                                       {"rubin_r200", Precision::kFp8, 32768},
                                       {"rubin_cpx", Precision::kNvfp4, 65536},
                                       {"rubin_ultra", Precision::kNvfp4, 65536},
                                       {"rtx_pro_6000", Precision::kBf16, 1024},
                                       {"rtx_3090", Precision::kBf16, 512},
                                       {"rtx_3080", Precision::kInt8, 2048},
                                       {"a40", Precision::kBf16, 1024},
                                       {"a30", Precision::kBf16, 2048},
                                       {"rtx_4060_ti", Precision::kFp8, 1024},
                                       {"rtx_5060_ti", Precision::kNvfp4, 4096},
                                       {"rtx_6000_ada", Precision::kFp8, 2048},
                                       {"v100_pcie", Precision::kFp16, 1024},
                                       {"arc_b60", Precision::kInt8, 4096},
                                       {"rtx_pro_6000", Precision::kNvfp4, 4096},
                                       {"mi300x", Precision::kBf16, 4 * 256 * 2},
                                       {"mi300x", Precision::kFp8, 4096},
                                       {"mi355x", Precision::kBf16, 4 * 512 * 2},
                                       {"mi355x", Precision::kNvfp4, 16384},
                                       {"ascend_910b", Precision::kBf16, 8192},
                                       {"ascend_910c", Precision::kBf16, 8192},
                                       {"tpu_v4", Precision::kInt8, 4 * 128 * 128 * 2},
                                       {"tpu_v5e", Precision::kBf16, 4 * 128 * 128 * 2},
                                       {"tpu_v5p", Precision::kBf16, 4 * 128 * 128 * 2},
                                       {"tpu_v6e", Precision::kBf16, 4 * 256 * 256 * 2},
                                       {"tpu_v7", Precision::kBf16, 4 * 256 * 256 * 2},
                                       {"trainium2", Precision::kBf16, 128 * 128 * 2},
                                       {"gaudi3", Precision::kBf16, 256 * 256 * 2},
                                       {"iphone_11", Precision::kInt8, 512},
                                       {"stm32f746", Precision::kInt8, 4}};
  for (const PerClock& rate : rates) {
    const AcceleratorConfig a = shipped_accelerator(rate.name);
    const double peak = a.compute.units.value * a.compute.clock.value.base() * rate.flops;
    EXPECT_NEAR(peak / a.compute.matrix.at(rate.precision).value.base(), 1, kAgree) << rate.name;
  }
}

// What a file says of a unit and a clock is what it says of the package, for every precision that
// it has both of.
TEST_P(Structures, UnitsTimesRateTimesClockIsTheNameplateRate) {
  const ComputeConfig compute = shipped_accelerator(GetParam()).compute;
  for (const auto& [precision, per_clock] : compute.matrix_per_clock) {
    const double peak = compute.units.value * compute.clock.value.base() * per_clock.value;
    EXPECT_NEAR(peak / compute.matrix.at(precision).value.base(), 1, kAgree)
        << to_string(precision);
  }
}

// fp32 lanes of an SM x 2 (64 lanes in Volta and the A100, 128 since; 128 of a CU, packed), at the
// boost clock, which is what data sheets rate vectors at. The Cortex-M7 has one lane.
TEST(Structure, UnitsAndBoostClockGiveTheVectorPeak) {
  const std::vector<std::pair<const char*, double>> rates = {
      {"v100_sxm", 128},     {"a100_sxm", 128}, {"h100_sxm", 256}, {"h200_sxm", 256},
      {"h800_sxm", 256},     {"h20", 256},      {"b200_sxm", 256}, {"gb200", 256},
      {"b300_sxm", 256},     {"gb300", 256},    {"mi300x", 256},   {"mi355x", 256},
      {"rtx_pro_6000", 256}, {"stm32f746", 2}};
  for (const auto& [name, flops] : rates) {
    const ComputeConfig compute = shipped_accelerator(name).compute;
    const Hertz clock = compute.boost_clock.value_or(compute.clock).value;
    EXPECT_NEAR(compute.units.value * clock.base() * flops / compute.vector.value.base(), 1,
                name == std::string("b200_sxm") ? 0.5 / 75 + 1e-3 : kAgree)  // printed as 75
        << name;
  }
}

struct SmLimits {
  const char* name;
  double shared_kib;  // of a block
  int blocks, cluster;
};

// CUDA C++ Programming Guide, technical specifications per compute capability 7.0, 8.0, 9.0, 10.0:
// 96, 164 - 1, 228 - 1 KiB (1 KiB a block is the system's), 64 K registers of 4 bytes and 64 warps
// throughout.
TEST(Structure, MultiprocessorsHaveTheLimitsOfTheirComputeCapability) {
  const std::vector<SmLimits> table = {{"v100_sxm", 96, 32, 1},   {"a100_sxm", 163, 32, 1},
                                       {"h100_sxm", 227, 32, 16}, {"h200_sxm", 227, 32, 16},
                                       {"b200_sxm", 227, 32, 16}, {"gb200", 227, 32, 16},
                                       {"h100_1g", 227, 32, 16}};
  for (const SmLimits& limits : table) {
    const AcceleratorConfig a = shipped_accelerator(limits.name);
    ASSERT_TRUE(a.core) << limits.name;
    EXPECT_EQ(a.core->registers->value, 256_KiB) << limits.name;
    EXPECT_EQ(a.core->shared_memory.value, Bytes(limits.shared_kib * 1024)) << limits.name;
    EXPECT_EQ(a.core->max_blocks.value, limits.blocks) << limits.name;
    EXPECT_EQ(a.core->max_warps.value, 64) << limits.name;
    EXPECT_EQ(a.core->max_cluster.value, limits.cluster) << limits.name;
  }
}

struct UnitRates {
  const char* name;
  double special, shared;  // results and bytes of a unit and clock
};

// One clock for vector, special functions and shared memory: the boost clock, as data sheets rate
// vectors. CUDA C++ Programming Guide: 16 special results and 32 banks of 4 bytes a clock; NVIDIA
// Blackwell technical brief: twice the exponentials in Blackwell Ultra. AMD: a quarter of 64 lanes,
// twice that in CDNA 4; 128 and 256 bytes of the local data share.
TEST(Structure, UnitsAndBoostClockGiveSpecialAndSharedRates) {
  const std::vector<UnitRates> table = {
      {"v100_sxm", 16, 128},    {"a100_sxm", 16, 128}, {"h100_sxm", 16, 128}, {"h200_sxm", 16, 128},
      {"h20", 16, 128},         {"h100_1g", 16, 128},  {"b200_sxm", 16, 128}, {"gb200", 16, 128},
      {"b300_sxm", 32, 128},    {"gb300", 32, 128},    {"mi300x", 16, 128},   {"mi355x", 32, 256},
      {"rtx_pro_6000", 16, 128}};
  for (const UnitRates& unit : table) {
    const AcceleratorConfig a = shipped_accelerator(unit.name);
    const double clock = a.compute.boost_clock.value_or(a.compute.clock).value.base();
    ASSERT_TRUE(a.core && a.compute.special) << unit.name;
    EXPECT_NEAR(a.core->shared_bandwidth.value.base() / clock / unit.shared, 1, 1e-3) << unit.name;
    EXPECT_NEAR(a.compute.special->value.base() / clock / a.compute.units.value / unit.special, 1,
                1e-3)
        << unit.name;
  }
}

// The fp32 results of one matrix instruction have to lie somewhere while they are summed.
TEST_P(Structures, TheResultsOfAMatrixInstructionFitTheUnit) {
  const AcceleratorConfig a = shipped_accelerator(GetParam());
  if (!a.core || !a.core->matrix_tile) return;
  const CoreConfig& core = *a.core;
  const Bytes room = core.accumulators ? core.accumulators->value
                     : core.registers  ? core.registers->value
                                       : core.shared_memory.value;
  EXPECT_LE(4.0 * core.matrix_tile->rows * core.matrix_tile->columns, room.base());
}

// A level nearer to the units is smaller and faster than the next, all units together.
TEST_P(Structures, NearerLevelsAreSmallerAndFaster) {
  const AcceleratorConfig a = shipped_accelerator(GetParam());
  if (!a.core) return;
  EXPECT_LT(a.core->shared_memory.value, a.memory.capacity.value);
  EXPECT_GE(a.core->shared_bandwidth.value * a.compute.units.value, a.memory.bandwidth.value);
  if (!a.cache) return;
  EXPECT_LT(a.core->shared_memory.value, a.cache->capacity.value);
  EXPECT_LT(a.cache->capacity.value, a.memory.capacity.value);
  EXPECT_GT(a.cache->bandwidth.value, a.memory.bandwidth.value);
  EXPECT_GT(a.core->shared_bandwidth.value * a.compute.units.value, a.cache->bandwidth.value);
}

TEST_P(Structures, GraphsLaunchFasterThanStreams) {
  const AcceleratorConfig a = shipped_accelerator(GetParam());
  if (!a.launch || !a.launch->graph) return;
  EXPECT_LT(a.launch->graph->value, a.launch->stream.value);
  EXPECT_LE(a.launch->stream.value, a.launch->host.value);
}

// 6 stacks x 1,024 bit x 6.25 Gb/s / 8 = 4.8 TB/s.
TEST(MemoryOrganisation, PinsAndRateGiveTheBandwidth) {
  const MemoryConfig memory = shipped_accelerator("h200_sxm").memory;
  EXPECT_EQ(memory.stacks->value, 6);
  EXPECT_EQ(memory.bus_width->value, 1024);
  EXPECT_DOUBLE_EQ(memory.data_rate->value.base(), 6.25e9 / 8);
}

TEST_P(Structures, PinsAndRateGiveTheBandwidth) {
  const MemoryConfig memory = shipped_accelerator(GetParam()).memory;
  if (!memory.stacks) return;
  const double pins =
      memory.stacks->value * memory.bus_width->value * memory.data_rate->value.base();
  EXPECT_NEAR(pins / memory.bandwidth.value.base(), 1, kAgree);
}

// 5 x 1,024 bit x 6 Gb/s / 8 = 3.84 TB/s.
TEST(MemoryOrganisation, AWrongRateIsRefusedWithTheArithmetic) {
  std::string messages;
  accelerator_of("{extends: h100_sxm, memory: {data_rate: {value: 6 Gb/s, source: S}}}", messages);
  EXPECT_THAT(messages, HasSubstr("5 x 1024 bit x 750 MB/s = 3.84 TB/s, not 3.35 TB/s"));
}

TEST(MemoryOrganisation, IsGivenWholeOrNotAtAll) {
  std::string messages;
  accelerator_of("{extends: h100_sxm, memory: {stacks: null}}", messages);
  EXPECT_THAT(messages, HasSubstr("together or not at all"));
}

TEST(MemoryOrganisation, AWhatIfOfTheBandwidthAloneDropsIt) {
  std::string messages;
  const auto a = accelerator_of("{extends: h100_sxm, memory: {bandwidth: 6.7 TB/s}}", messages);
  EXPECT_EQ(messages, "");
  EXPECT_EQ(a.memory.bandwidth.value, 6.7_TBps);
  EXPECT_FALSE(a.memory.stacks || a.memory.bus_width || a.memory.data_rate);
}

TEST(Structure, WhatIsNotKnownIsAbsent) {
  const AcceleratorConfig rubin = shipped_accelerator("rubin_r200");
  EXPECT_FALSE(rubin.core || rubin.cache || rubin.launch);
  const AcceleratorConfig stm32 = shipped_accelerator("stm32f746");
  EXPECT_FALSE(stm32.core->matrix_tile || stm32.cache || stm32.memory.exchange);
  EXPECT_EQ(stm32.memory.kind, "SRAM");
  EXPECT_EQ(stm32.memory.refresh.value, 0);
  EXPECT_FALSE(stm32.scale_up.present() || stm32.scale_out.present());
}

}  // namespace
}  // namespace orrery::structure_test
