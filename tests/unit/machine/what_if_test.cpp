// SPDX-License-Identifier: Apache-2.0
// One figure of a device is changed: those of its data sheet that hang together with it follow.
#include "sim/machine/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::what_if_test {
namespace {

using namespace literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

AcceleratorConfig changed(const std::string& change, const std::string& base = "h200_sxm") {
  std::string messages;
  AcceleratorConfig a = accelerator_of("{extends: " + base + ", " + change + "}", messages);
  EXPECT_EQ(messages, "");
  return a;
}

double bf16(const AcceleratorConfig& a) {
  return a.compute.matrix.at(Precision::kBf16).value.base();
}

const AcceleratorConfig& shipped() {
  static const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  return h200;
}

TEST(WhatIf, ADeviceAsSoldFollowsNothing) {
  for (const std::string& name : shipped_library().names("accelerators")) {
    const AcceleratorConfig a = shipped_accelerator(name);
    EXPECT_THAT(a.followed, IsEmpty()) << name;
    EXPECT_EQ(a.sold, nullptr) << name;
  }
}

SystemConfig system_of(const std::string& yaml) {
  config::Diagnostics diagnostics;
  const config::Node node =
      config::resolve_extends(config::parse_yaml(yaml, "test.yaml", diagnostics), "systems",
                              diagnostics, shipped_library());
  const auto system = config::read<SystemConfig>(node, diagnostics, shipped_library());
  EXPECT_EQ(diagnostics.render(), "");
  return system;
}

// 13,840 W of 8 accelerators are 6,920 W of 4.
TEST(WhatIf, HalfOfTheAcceleratorsOfASystemHaveHalfOfItsAllInPower) {
  const SystemConfig half =
      system_of("{extends: dgx_h100, accelerators: 4, accelerators_per_node: 4}");
  EXPECT_EQ(half.all_in_power->value, Watts(6920));
  EXPECT_THAT(half.all_in_power->source, HasSubstr("derived: 13840 W x 4 / 8 accelerators; 8 x "));
  EXPECT_THAT(followed(half),
              ElementsAre("all_in_power became 6.92 kW: 13840 W x 4 / 8 accelerators; write it if "
                          "hosts and fans draw otherwise",
                          "nameplate_power became 5.1 kW: 10200 W x 4 / 8 accelerators; write it "
                          "if hosts and fans draw otherwise",
                          "host_power became 1.2 kW: 2400 W x 4 / 8 accelerators; write it if "
                          "hosts and fans draw otherwise"));
}

TEST(WhatIf, AllInPowerThatIsWrittenWithTheAcceleratorsStays) {
  const SystemConfig half = system_of(
      "{extends: dgx_h100, accelerators: 4, accelerators_per_node: 4, all_in_power: 8 kW, "
      "nameplate_power: 6 kW, host_power: 2 kW}");
  EXPECT_EQ(half.all_in_power->value, Watts(8000));
  EXPECT_THAT(followed(half), IsEmpty());
}

TEST(WhatIf, ASystemAsSoldFollowsNothing) {
  for (const std::string& name : shipped_library().names("systems")) {
    const std::string file = shipped_library().locate("systems", name, "");
    EXPECT_THAT(followed(config::load<SystemConfig>(file, shipped_library(), "systems")), IsEmpty())
        << name;
  }
}

TEST(WhatIf, TwiceTheUnitsHaveTwiceTheRates) {
  const AcceleratorConfig a = changed("compute: {units: 264}");
  EXPECT_NEAR(bf16(a) / bf16(shipped()), 2, 1e-3);
  EXPECT_NEAR(a.compute.matrix.at(Precision::kTf32).value / 494.7_TFLOPps, 2, 1e-3);
  EXPECT_NEAR(a.compute.vector.value / shipped().compute.vector.value, 2, 1e-3);
  EXPECT_NEAR(a.compute.special->value / shipped().compute.special->value, 2, 1e-3);
  EXPECT_EQ(a.core->shared_bandwidth.value, shipped().core->shared_bandwidth.value);  // of one
}

TEST(WhatIf, AllThatTheClockDrivesFollowsIt) {
  const AcceleratorConfig a = changed("compute: {clock: 915 MHz}");
  EXPECT_NEAR(bf16(a) / bf16(shipped()), 0.5, 1e-3);
  EXPECT_NEAR(a.compute.boost_clock->value.base(), 990e6, 1e6);
  EXPECT_NEAR(a.core->shared_bandwidth.value / shipped().core->shared_bandwidth.value, 0.5, 1e-3);
  EXPECT_NEAR(a.cache->bandwidth.value / shipped().cache->bandwidth.value, 0.5, 1e-3);
  EXPECT_EQ(a.memory.bandwidth.value, shipped().memory.bandwidth.value);
}

// 132 x 8,192 x 1.83 GHz = 1,979 TFLOP/s.
TEST(WhatIf, ATensorCoreRateChangesItsPrecisionAlone) {
  const AcceleratorConfig a =
      changed("compute: {matrix_per_clock: {bf16: 8192, fp8: {value: 8192, source: S}}}");
  EXPECT_NEAR(bf16(a), 132 * 8192 * 1.83e9, 1);
  EXPECT_EQ(a.compute.matrix.at(Precision::kTf32).value, 494.7_TFLOPps);
  EXPECT_EQ(a.compute.vector.value, shipped().compute.vector.value);
}

TEST(WhatIf, ARateThatWasWrittenStays) {
  const AcceleratorConfig a = changed("compute: {units: 264, matrix: {bf16: 1500 TFLOP/s}}");
  EXPECT_EQ(a.compute.matrix.at(Precision::kBf16).value, 1500_TFLOPps);
  EXPECT_NEAR(a.compute.matrix.at(Precision::kFp16).value / 989.4_TFLOPps, 2, 1e-3);
}

/// All that is told, one sentence a line.
std::string told(const AcceleratorConfig& a) {
  std::string text;
  for (const std::string& sentence : a.followed) text += sentence + "\n";
  return text;
}

// Each of the rates with a figure per clock was written, so that nothing tells what 132 SMs had.
TEST(WhatIf, RatesThatCannotFollowAreNamedWithTheReason) {
  const AcceleratorConfig a = changed(
      "compute: {units: 160, matrix: {tf32: 600 TFLOP/s, bf16: 1200 TFLOP/s, fp8: 2400 TFLOP/s}}");
  EXPECT_EQ(a.compute.vector.value, shipped().compute.vector.value);
  EXPECT_THAT(told(a), HasSubstr("compute.matrix.fp16, compute.matrix.int8, compute.vector and "
                                 "compute.special did not follow compute.units: "
                                 "no rate is left that tells units x clock of the part as sold"));
}

// 494.7 / 2,048 is still there where the rates that people know by heart were both written.
TEST(WhatIf, TwoRatesThatWereWrittenLeaveAThirdThatTells) {
  const AcceleratorConfig a =
      changed("compute: {units: 160, matrix: {bf16: 1200 TFLOP/s, fp8: 2400 TFLOP/s}}");
  EXPECT_NEAR(a.compute.vector.value / shipped().compute.vector.value, 160 / 132.0, 1e-3);
  EXPECT_NEAR(a.compute.matrix.at(Precision::kInt8).value / 1978.9_TFLOPps, 160 / 132.0, 1e-3);
  EXPECT_THAT(told(a), Not(HasSubstr("did not follow")));
  ASSERT_NE(a.sold, nullptr);
  EXPECT_NEAR(bf16(*a.sold) / bf16(shipped()), 1, 1e-3);
}

// 989.4 / 4,096 is still there: 160 x 1.83 GHz over it is 1.2121.
TEST(WhatIf, OneRateThatIsLeftIsEnoughForTheOthers) {
  const AcceleratorConfig a = changed("compute: {units: 160, matrix: {fp8: 2400 TFLOP/s}}");
  EXPECT_NEAR(a.compute.vector.value / shipped().compute.vector.value, 160 / 132.0, 1e-3);
  EXPECT_NEAR(a.compute.special->value / shipped().compute.special->value, 160 / 132.0, 1e-3);
  EXPECT_NEAR(bf16(a) / bf16(shipped()), 160 / 132.0, 1e-3);
  EXPECT_THAT(told(a), Not(HasSubstr("did not follow")));
}

TEST(WhatIf, WhatTheClockDrivesCannotFollowWhereTheUnitsChangedToo) {
  const AcceleratorConfig a = changed("compute: {units: 264, clock: 915 MHz}");
  EXPECT_NEAR(bf16(a) / bf16(shipped()), 1, 1e-3);  // twice the units at half the clock
  EXPECT_EQ(a.cache->bandwidth.value, shipped().cache->bandwidth.value);
  EXPECT_THAT(told(a),
              HasSubstr("compute.boost_clock, core.shared_bandwidth and cache.bandwidth "
                        "did not follow compute.clock: compute.units was changed as well"));
}

TEST(WhatIf, CapacityCannotFollowStacksOfOtherPins) {
  const AcceleratorConfig a = changed("memory: {stacks: 8, data_rate: 9.2 Gb/s}");
  EXPECT_DOUBLE_EQ(a.memory.bandwidth.value.base(), 8 * 1024 * 9.2e9 / 8);
  EXPECT_EQ(a.memory.capacity.value, shipped().memory.capacity.value);
  EXPECT_THAT(told(a), HasSubstr("memory.capacity did not follow memory.stacks"));
}

// 8 x 1,024 bit x 6.25 Gb/s / 8 = 6.4 TB/s; 8 of 6 stacks hold 4/3 as much.
TEST(WhatIf, MoreStacksBringBandwidthAndCapacity) {
  const AcceleratorConfig a = changed("memory: {stacks: 8}");
  EXPECT_DOUBLE_EQ(a.memory.bandwidth.value.base(), 6.4e12);
  EXPECT_NEAR(a.memory.capacity.value / shipped().memory.capacity.value, 8.0 / 6, 1e-6);
}

TEST(WhatIf, AFasterPinBringsBandwidthAlone) {
  const AcceleratorConfig a = changed("memory: {data_rate: 9.2 Gb/s}");
  EXPECT_DOUBLE_EQ(a.memory.bandwidth.value.base(), 6 * 1024 * 9.2e9 / 8);
  EXPECT_EQ(a.memory.capacity.value, shipped().memory.capacity.value);
}

TEST(WhatIf, WhatFollowedIsTold) {
  const AcceleratorConfig a = changed("memory: {stacks: 8}");
  ASSERT_EQ(a.followed.size(), 2U);
  EXPECT_EQ(a.followed[1], "memory.bandwidth: 4.8 TB/s became 6.4 TB/s");
}

TEST(WhatIf, FiguresWithSourcesMustAgree) {
  std::string messages;
  accelerator_of("{extends: h200_sxm, compute: {units: {value: 144, source: S}}}", messages);
  EXPECT_THAT(messages, HasSubstr("144 x 1.83 GHz x 2048 = 539.68896 TFLOP/s, not 494.7 TFLOP/s"));
}

TEST(WhatIf, TheRatesOfAPartAreThoseOfItsUnitsOfAFasterWhole) {
  const AcceleratorConfig a = changed("compute: {clock: 915 MHz}", "h100_1g");
  EXPECT_NEAR(bf16(a), 989.4e12 / 2 * 16 / 132, 1e11);
}

}  // namespace
}  // namespace orrery::what_if_test
