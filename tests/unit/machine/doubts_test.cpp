// SPDX-License-Identifier: Apache-2.0
// Figures of data sheets that are misread in the usual ways are told, and those of the library are
// none of them.
#include "sim/machine/doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/machine/shipped_library.h"

namespace orrery::doubts_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> told(const AcceleratorConfig& device) {
  std::vector<std::string> sentences;
  for (const config::KeyError& doubt : doubts(device))
    sentences.push_back(doubt.paths().front() + ": " + doubt.message());
  return sentences;
}

/// What is told of the H100 with other figures, which must be no error.
std::vector<config::KeyError> doubts_of(const std::string& changes) {
  std::string messages;
  const AcceleratorConfig device = accelerator_of("extends: h100_sxm\n" + changes, messages);
  EXPECT_THAT(messages, testing::Not(HasSubstr("error"))) << messages;
  return doubts(device);
}

class DoubtsOfTheLibrary : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Library, DoubtsOfTheLibrary,
                         testing::ValuesIn(shipped_library().names("accelerators")),
                         [](const auto& test) { return test.param; });

TEST_P(DoubtsOfTheLibrary, AreNone) {
  EXPECT_THAT(told(shipped_accelerator(GetParam())), IsEmpty());
}

// Losses of the memory are those of its pins, also where a what-if writes another bandwidth.
TEST_P(DoubtsOfTheLibrary, AMemoryTellsItsPins) {
  const MemoryConfig memory = shipped_accelerator(GetParam()).memory;
  EXPECT_TRUE(memory.stacks && memory.bus_width && memory.data_rate);
}

// Systems may change ports and caps of their accelerators.
TEST(Doubts, AreNoneOfTheAcceleratorsOfSystems) {
  const config::Library& library = shipped_library();
  for (const std::string& name : library.names("systems")) {
    const auto system =
        config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
    EXPECT_THAT(told(system.accelerator), IsEmpty()) << name;
  }
}

// A year is that of the product: one that extends another does not take over its year.
TEST(Doubts, EveryAcceleratorOfTheLibraryHasAYearOfItsOwn) {
  const config::Library& library = shipped_library();
  for (const std::string& name : library.names("accelerators")) {
    config::Diagnostics diagnostics;
    const std::string path = library.locate("accelerators", name, "");
    const config::Node node = config::load_file(path, diagnostics, library, "accelerators");
    const config::Node* year = node.find("year");
    ASSERT_NE(year, nullptr) << name;
    EXPECT_EQ(*year->origin().file, path);
  }
}

// 132 SMs x 1,830 MHz x 4,096 FLOP/clk = 989.4 TFLOP/s dense; the data sheet leads with 1,979.
TEST(Doubts, ASparseRateIsTwiceWhatUnitsAndClockGive) {
  const auto found = doubts_of("compute: {matrix: {bf16: 1979 TFLOP/s}}\n");
  ASSERT_EQ(found.size(), 2U);  // such a product would draw 1.6 of the design power, too
  EXPECT_THAT(found[0].paths(), ElementsAre("compute.matrix.bf16"));
  EXPECT_THAT(found[0].message(), HasSubstr("units x clock x matrix_per_clock is"));
  EXPECT_THAT(found[0].message(), HasSubstr("not 1.979 PFLOP/s"));
  EXPECT_THAT(found[0].advice().notes, ElementsAre(HasSubstr("twice as high")));
}

// 3,958 TFLOP/s of sparse fp8 over 989 of dense bf16, where nothing tells of units and clocks.
TEST(Doubts, ASparseRateBesideADenseOneIsFourTimesAsHigh) {
  std::string messages;
  AcceleratorConfig device = accelerator_of("extends: h100_sxm\n", messages);
  device.compute.matrix_per_clock.clear();
  EXPECT_THAT(told(device), IsEmpty());
  device.compute.matrix.at(Precision::kFp8).value = FlopsPerSecond(3958e12);
  EXPECT_THAT(told(device)[0], HasSubstr("fp8 is four times as fast as formats of 16 bits"));
}

// 8 tensor engines x 2,400 MHz x 512 x 128 multiply-adds of MXFP8 are 2,517 TFLOP/s; a quarter of
// 16 bits.
TEST(Doubts, FourTimesTheRateIsNoneWhereUnitsAndClockGiveIt) {
  const AcceleratorConfig device = shipped_accelerator("trainium3");
  EXPECT_NEAR(device.compute.matrix.at(Precision::kFp8).value /
                  device.compute.matrix.at(Precision::kBf16).value,
              4, 0.05);
  EXPECT_THAT(told(device), IsEmpty());
}

// 900 GB/s are both ways: 18 links of 25 GB/s one way are 450.
TEST(Doubts, BandwidthsOfBothWaysAreTold) {
  const auto found = doubts_of("scale_up: {bandwidth: 900 GB/s}\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].paths(), ElementsAre("scale_up.bandwidth"));
  EXPECT_THAT(found[0].message(), HasSubstr("18 links are 50 GB/s each; NVLink 4 has 25 GB/s"));
  EXPECT_THAT(found[0].advice().notes, ElementsAre(HasSubstr("one way")));
}

TEST(Doubts, BitsForBytesAreTold) {
  const auto found = doubts_of("scale_out: {bandwidth: 400 GB/s}\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].advice().notes, ElementsAre(HasSubstr("Gb/s are bits")));
}

// 5 stacks x 1,024 bit x 5.23 Gb/s = 3,347 GB/s, all of them written without sources.
TEST(Doubts, PinsThatDoNotGiveTheBandwidthAreTold) {
  const std::string pins = "stacks: 5, bus_width: 1024, data_rate: 5.23 Gb/s";
  EXPECT_THAT(doubts_of("memory: {bandwidth: 3350 GB/s, " + pins + "}\n"), IsEmpty());
  const auto found = doubts_of("memory: {bandwidth: 4800 GB/s, " + pins + "}\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].message(), HasSubstr("3.3472 TB/s, not 4.8 TB/s"));
}

// The bandwidth alone is a what-if of other memory, and the pins are no longer its own.
TEST(Doubts, AWhatIfIsNone) {
  EXPECT_THAT(doubts_of("memory: {bandwidth: 4800 GB/s}\n"), IsEmpty());
  EXPECT_THAT(doubts_of("compute: {units: 264}\n"), IsEmpty());
  EXPECT_THAT(doubts_of("compute: {clock: 1 GHz}\n"), IsEmpty());
}

// By hand, of an H100: 130 + 132 x 1.5 + 794.5 T x 0.45 pJ + 0.8 x 3.35 TB/s x 34 pJ/B = 777
// W, 1.11 of 700 W.
TEST(Doubts, PowerThatNoBoardDrawsIsTold) {
  EXPECT_THAT(doubts_of("power: {tdp: 1500 W}\n"), IsEmpty());  // 0.52
  const auto low = doubts_of("power: {tdp: 1600 W}\n");
  ASSERT_EQ(low.size(), 1U);
  EXPECT_THAT(low[0].message(), HasSubstr("777 W, 0.49 of the design power"));
  const auto high = doubts_of("power: {tdp: 400 W}\n");
  ASSERT_EQ(high.size(), 1U);
  EXPECT_THAT(high[0].message(), HasSubstr("777 W, 1.94 of the design power"));
}

TEST(Doubts, FindingsHaveTheWayFromWhatTheUserWrote) {
  const AcceleratorConfig device = shipped_accelerator("h100_sxm");
  AcceleratorConfig both = device;
  both.scale_up.bandwidth.value = BytesPerSecond(900e9);
  EXPECT_THAT(doubts(both, "system.accelerator.").at(0).paths(),
              ElementsAre("system.accelerator.scale_up.bandwidth"));
}

}  // namespace
}  // namespace orrery::doubts_test
