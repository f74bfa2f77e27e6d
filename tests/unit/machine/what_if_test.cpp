// SPDX-License-Identifier: Apache-2.0
// One figure of a device is changed: those of its data sheet that hang together with it follow.
#include "sim/machine/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/override.h"
#include "sim/machine/clock.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::what_if_test {
namespace {

using namespace literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

TEST(WhatIf, ATensorCoreRateChangesItsPrecisionAlone) {
  const AcceleratorConfig a =
      changed("compute: {matrix_per_clock: {bf16: 8192, fp8: {value: 8192, source: S}}}");
  EXPECT_NEAR(bf16(a) / bf16(shipped()), 2, 1e-12);
  EXPECT_EQ(a.compute.matrix.at(Precision::kTf32).value, 494.7_TFLOPps);
  EXPECT_EQ(a.compute.vector.value, shipped().compute.vector.value);
}

TEST(WhatIf, ARateThatWasWrittenStays) {
  const AcceleratorConfig a = changed("compute: {units: 264, matrix: {bf16: 1500 TFLOP/s}}");
  EXPECT_EQ(a.compute.matrix.at(Precision::kBf16).value, 1500_TFLOPps);
  EXPECT_NEAR(a.compute.matrix.at(Precision::kFp16).value / 989.4_TFLOPps, 2, 1e-3);
}

TEST(WhatIf, RatesFollowWhicheverOthersAreWritten) {
  const AcceleratorConfig a = changed(
      "compute: {units: 160, matrix: {tf32: 600 TFLOP/s, bf16: 1200 TFLOP/s, fp8: 2400 TFLOP/s}}");
  EXPECT_NEAR(a.compute.vector.value / shipped().compute.vector.value, 160 / 132.0, 1e-12);
  EXPECT_NEAR(a.compute.matrix.at(Precision::kInt8).value / 1978.9_TFLOPps, 160 / 132.0, 1e-12);
  EXPECT_EQ(bf16(a), 1200e12);
  ASSERT_NE(a.sold, nullptr);
  EXPECT_EQ(bf16(*a.sold), bf16(shipped()));
  EXPECT_EQ(a.sold->compute.units.value, 132);
}

TEST(WhatIf, UnitsAndClockTogetherScaleWhatEachScales) {
  const AcceleratorConfig a = changed("compute: {units: 264, clock: 915 MHz}");
  EXPECT_NEAR(bf16(a) / bf16(shipped()), 1, 1e-12);  // twice the units at half the clock
  EXPECT_NEAR(a.cache->bandwidth.value / shipped().cache->bandwidth.value, 0.5, 1e-12);
  EXPECT_NEAR(a.core->shared_bandwidth.value / shipped().core->shared_bandwidth.value, 0.5, 1e-12);
  EXPECT_NEAR(boost_clock(a) / boost_clock(shipped()), 0.5, 1e-12);
}

// One domain: the same part whichever of its clocks is written.
TEST(WhatIf, TheBoostClockIsTheClockOfTheSameDomain) {
  const AcceleratorConfig boost = changed("compute: {boost_clock: 2475 MHz}");
  const AcceleratorConfig clock = changed("compute: {clock: 2287.5 MHz}");
  EXPECT_NEAR(boost.compute.clock.value / clock.compute.clock.value, 1, 1e-12);
  EXPECT_NEAR(boost_clock(boost) / boost_clock(clock), 1, 1e-12);
  EXPECT_NEAR(bf16(boost) / bf16(shipped()), 1.25, 1e-12);
  EXPECT_NEAR(boost.compute.vector.value / shipped().compute.vector.value, 1.25, 1e-12);
}

TEST(WhatIf, BothClocksThatAreWrittenStay) {
  const AcceleratorConfig a = changed("compute: {clock: 1830 MHz, boost_clock: 2475 MHz}");
  EXPECT_EQ(bf16(a), bf16(shipped()));  // holds at `clock`
  EXPECT_NEAR(a.compute.vector.value / shipped().compute.vector.value, 1.25, 1e-12);
  EXPECT_EQ(boost_clock(a), Hertz(2475e6));
}

TEST(WhatIf, StacksOfOtherPinsBringTheirCapacity) {
  const AcceleratorConfig a = changed("memory: {stacks: 8, data_rate: 9.2 Gb/s}");
  EXPECT_DOUBLE_EQ(a.memory.bandwidth.value.base(), 8 * 1024 * 9.2e9 / 8);
  EXPECT_NEAR(a.memory.capacity.value / shipped().memory.capacity.value, 8.0 / 6, 1e-12);
}

TEST(WhatIf, LinksBringTheirBandwidth) {
  const AcceleratorConfig a = changed("scale_up: {links: 36}");
  EXPECT_NEAR(a.scale_up.bandwidth.value / shipped().scale_up.bandwidth.value, 2, 1e-12);
}

TEST(WhatIf, AFileWithSourcesIsAnotherDevice) {
  const AcceleratorConfig a = changed(
      "memory: {bandwidth: {value: 4.7 TB/s, source: S}, data_rate: {value: 6.1 Gb/s, "
      "source: S}}, scale_up: {links: {value: 36, source: S}}");
  EXPECT_THAT(a.followed, IsEmpty());
  EXPECT_EQ(a.memory.sold, nullptr);
  EXPECT_EQ(a.scale_up.bandwidth.value, shipped().scale_up.bandwidth.value);
}

/// A device of somebody's own: no figure has a source, or a relation to others.
const char* const kOwn = R"({
  accelerator: nova, name: Nova,
  compute: {units: 100, clock: 1.6 GHz, boost_clock: 2 GHz, matrix: {bf16: 400 TFLOP/s}, vector: 50 TFLOP/s},
  memory: {capacity: 96 GB, bandwidth: 3 TB/s, stacks: 6, bus_width: 1024, data_rate: 4 Gb/s},
  core: {shared_memory: 228 KiB, shared_bandwidth: 250 GB/s},
  cache: {capacity: 64 MiB, bandwidth: 6 TB/s},
  power: {tdp: 700 W, idle: 80 W},
  energy: {matrix: {bf16: 0.8 pJ/FLOP}, vector: 6 pJ/FLOP, memory: 40 pJ/B},
  kernel: {matrix_efficiency: {bf16: 0.8}, vector_efficiency: 0.7, memory_efficiency: 0.8, exponent: 4, launch: 3 us}})";

/// Own, with settings as of `--set`.
AcceleratorConfig own(const std::vector<std::string>& settings, const std::string& yaml = kOwn) {
  config::Diagnostics diagnostics;
  const config::Record& record = AcceleratorConfig::schema().record();
  config::Node node = config::parse_yaml(yaml, "own.yaml", diagnostics);
  for (const std::string& setting : settings)
    config::apply_override(node, record, setting, diagnostics, shipped_library());
  const auto a = config::read<AcceleratorConfig>(node, diagnostics, shipped_library());
  EXPECT_EQ(diagnostics.render(), "");
  return a;
}

TEST(WhatIf, AFileWithoutSourcesSaysWhatTheDeviceIs) {
  const AcceleratorConfig a = own({});
  EXPECT_THAT(a.followed, IsEmpty());
  EXPECT_EQ(a.sold, nullptr);
  EXPECT_EQ(a.memory.sold, nullptr);
}

TEST(WhatIf, UnitsAndClocksOfADeviceWithoutSourcesScaleItsRates) {
  const AcceleratorConfig units = own({"compute.units=125"});
  EXPECT_NEAR(bf16(units), 500e12, 1);
  EXPECT_NEAR(units.compute.vector.value.base(), 62.5e12, 1);
  const AcceleratorConfig clock = own({"compute.clock=2 GHz"});
  EXPECT_NEAR(bf16(clock), 500e12, 1);
  EXPECT_NEAR(boost_clock(clock).base(), 2.5e9, 1);
  EXPECT_NEAR(clock.cache->bandwidth.value.base(), 7.5e12, 1);
  ASSERT_NE(clock.sold, nullptr);
  EXPECT_EQ(clock.sold->compute.clock.value, Hertz(1.6e9));
}

TEST(WhatIf, StacksOfADeviceWithoutSourcesBringBandwidthAndCapacity) {
  const AcceleratorConfig a = own({"memory.stacks=8"});
  EXPECT_NEAR(a.memory.bandwidth.value.base(), 4e12, 1);
  EXPECT_NEAR(a.memory.capacity.value.base(), 128e9, 1);
}

TEST(WhatIf, ARateOfTheSameWhatIfStaysInAnyOrder) {
  for (const std::vector<std::string>& set :
       {std::vector<std::string>{"compute.matrix.bf16=400 TFLOP/s", "compute.units=200"},
        std::vector<std::string>{"compute.units=200", "compute.matrix.bf16=400 TFLOP/s"}}) {
    const AcceleratorConfig a = own(set);
    EXPECT_EQ(bf16(a), 400e12);
    EXPECT_NEAR(a.compute.vector.value.base(), 100e12, 1);
  }
}

// Energies are those at the clock of the changed chip: no voltage of the old one is left.
TEST(WhatIf, EnergiesThatAreWrittenAreThoseOfAnotherSilicon) {
  EXPECT_EQ(own({"compute.clock=3.2 GHz", "energy.matrix.bf16=0.5 pJ/FLOP"}).sold, nullptr);
}

// A rate of the file is the chip's, so that units of a later what-if scale it.
TEST(WhatIf, AWhatIfOfAChangedDeviceScalesWhatItHasThen) {
  config::Diagnostics diagnostics;
  const config::Record& record = AcceleratorConfig::schema().record();
  config::Node node = config::resolve_extends(
      config::parse_yaml("{extends: h200_sxm, compute: {units: 264, matrix: {bf16: 1500 TFLOP/s}}}",
                         "test.yaml", diagnostics),
      "accelerators", diagnostics, shipped_library());
  config::apply_override(node, record, "compute.units=132", diagnostics, shipped_library());
  const auto a = config::read<AcceleratorConfig>(node, diagnostics, shipped_library());
  EXPECT_EQ(diagnostics.render(), "");
  EXPECT_NEAR(bf16(a), 750e12, 1);
  EXPECT_NEAR(a.compute.vector.value / shipped().compute.vector.value, 1, 1e-12);
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
  EXPECT_EQ(a.followed[0], "memory.bandwidth: 4.8 TB/s became 6.4 TB/s");
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
