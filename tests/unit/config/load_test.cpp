// SPDX-License-Identifier: Apache-2.0
#include "sim/config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/config/sample.h"

namespace orrery::load_test {
namespace {

using config::ConfigError;
using config::Diagnostics;
using testing::HasSubstr;

std::string load_error(const SampleFolder& folder, const std::string& path) {
  try {
    config::load<Rack>(path, folder.library());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Load, EveryTypeOfMemberIsRead) {
  const SampleFolder folder;
  folder.write("trace.csv", "");
  const std::string path = folder.write("rack.yaml", R"(name: r1
chip: alpha
chips: 1e1
seed: -9223372036854775808
efficiency: 0.5
cooled: true
format: fp8
links: [1, 2, 3]
delays: {b: 3 us, a: 0}
cooling: {power: 2 kW, liquid: false}
budget: 100 kW
layers: [{window: 128}, {}]
trace: trace.csv
extra: {any: [thing]}
)");
  const Rack rack = config::load<Rack>(path, folder.library());
  EXPECT_EQ(rack.name, "r1");
  EXPECT_EQ(rack.chip.id, "alpha");
  EXPECT_EQ(rack.chip.memory.capacity.value, Bytes(80e9));
  EXPECT_EQ(rack.chip.memory.capacity.source, "alpha datasheet");
  EXPECT_EQ(rack.chip.peak.at(Format::kBf16).value, FlopsPerSecond(300e12));
  EXPECT_EQ(rack.chips, 10);
  EXPECT_EQ(rack.seed, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(rack.efficiency, 0.5);
  EXPECT_TRUE(rack.cooled);
  EXPECT_EQ(rack.format, Format::kFp8);
  EXPECT_EQ(rack.links, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(rack.delays.at("b"), Seconds(3e-6));
  EXPECT_EQ(rack.delays.at("a"), Seconds(0));
  ASSERT_TRUE(rack.cooling.has_value());
  EXPECT_EQ(rack.cooling->power, Watts(2000));
  EXPECT_FALSE(rack.cooling->liquid);
  EXPECT_EQ(rack.budget, Watts(100e3));
  ASSERT_EQ(rack.layers.size(), 2u);
  EXPECT_EQ(rack.layers[0].window, 128);
  EXPECT_EQ(rack.layers[1].window, 0);
  EXPECT_EQ(rack.trace.path, folder.path("trace.csv"));
  EXPECT_EQ(rack.extra.at_path("any.0")->text(), "thing");
}

TEST(Load, WhatIsLeftOutHasItsDefault) {
  const SampleFolder folder;
  const Rack rack = config::load<Rack>(folder.write("r.yaml", kInlineRack), folder.library());
  EXPECT_EQ(rack.name, "rack");
  EXPECT_EQ(rack.chips, 8);
  EXPECT_EQ(rack.links, (std::vector<int>{4, 4}));
  EXPECT_EQ(rack.chip.memory.kind, "HBM");
  EXPECT_FALSE(rack.cooling.has_value());
  EXPECT_TRUE(rack.trace.empty());
}

TEST(Load, AFactMayStandWithItsSources) {
  const SampleFolder folder;
  const Rack rack = config::load<Rack>(
      folder.write(
          "r.yaml",
          "chip:\n  memory:\n    capacity: 80 GB\n    bandwidth: {value: 392 GB/s, source: paper, "
          "nameplate: 2800 Gb/s, nameplate_source: datasheet, reason: measured}\n"),
      folder.library());
  const Fact<BytesPerSecond>& bandwidth = rack.chip.memory.bandwidth;
  EXPECT_EQ(bandwidth.value, BytesPerSecond(392e9));
  EXPECT_EQ(bandwidth.published(), BytesPerSecond(350e9));  // 2800 Gb/s / 8
  EXPECT_EQ(bandwidth.source, "paper");
  EXPECT_EQ(bandwidth.nameplate_source, "datasheet");
  EXPECT_EQ(bandwidth.reason, "measured");
}

TEST(Extends, LaysAFileOverItsBase) {
  const SampleFolder folder;
  const Rack rack = config::load<Rack>(folder.write("r.yaml", "chip: beta\n"), folder.library());
  EXPECT_EQ(rack.chip.id, "beta");
  EXPECT_EQ(rack.chip.memory.bandwidth.value, BytesPerSecond(3e12));
  EXPECT_EQ(rack.chip.memory.capacity.value, Bytes(80e9));
}

TEST(Extends, WorksInlineAndAtTheTopOfAFile) {
  const SampleFolder folder;
  folder.write("base.yaml", "chip: alpha\nchips: 4\nname: base\n");
  const std::string path = folder.write(
      "sub/r.yaml",
      "extends: ../base.yaml\nname: over\nchip: {extends: beta, memory: {capacity: 96 GB}}\n");
  const Rack rack = config::load<Rack>(path, folder.library());
  EXPECT_EQ(rack.name, "over");
  EXPECT_EQ(rack.chips, 4);
  EXPECT_EQ(rack.chip.memory.capacity.value, Bytes(96e9));
  EXPECT_EQ(rack.chip.memory.capacity.source, "");
  EXPECT_EQ(rack.chip.memory.bandwidth.value, BytesPerSecond(3e12));
}

TEST(Extends, PathsAreRelativeToTheFileThatNamesThem) {
  const SampleFolder folder;
  folder.write("base/trace.csv", "");
  folder.write("base/base.yaml", "chip: alpha\ntrace: trace.csv\n");
  const std::string path = folder.write("r.yaml", "extends: base/base.yaml\n");
  EXPECT_EQ(config::load<Rack>(path, folder.library()).trace.path, folder.path("base/trace.csv"));
}

TEST(Extends, ACycleIsShown) {
  const SampleFolder folder;
  const std::string a = folder.write("a.yaml", "extends: b.yaml\n");
  const std::string b = folder.write("b.yaml", "extends: ./a.yaml\n");
  const std::string error = load_error(folder, a);
  EXPECT_THAT(error, HasSubstr(b + ":1:10: error: 'extends' goes round in a circle"));
  EXPECT_THAT(error, HasSubstr(a + " -> " + b + " -> " + a));
  folder.write("self.yaml", "extends: self.yaml\n");
  EXPECT_THAT(load_error(folder, folder.path("self.yaml")), HasSubstr("circle"));
}

TEST(Extends, AMistakeInTheBaseIsReportedThere) {
  const SampleFolder folder;
  const std::string base = folder.write("base.yaml", "chip: alpha\nchips: 0\n");
  EXPECT_THAT(load_error(folder, folder.write("r.yaml", "extends: base.yaml\n")),
              HasSubstr(base + ":2:8: error: '0' is out of bounds"));
}

TEST(Files, FaultsOfTheFileItselfAreNamed) {
  const SampleFolder folder;
  folder.write("rack.yaml", kInlineRack);
  EXPECT_EQ(load_error(folder, folder.path("rakc.yaml")),
            folder.path("rakc.yaml") + ": error: no such file; did you mean '" +
                folder.path("rack.yaml") + "'?\n");
  EXPECT_THAT(load_error(folder, folder.path("library")), HasSubstr("is a directory"));
  EXPECT_THAT(load_error(folder, folder.write("e.yaml", "")), HasSubstr("the file is empty"));
  const std::string large = folder.write("large.yaml", "a: b\n");
  std::filesystem::resize_file(large, (16U << 20U) + 1);
  EXPECT_THAT(load_error(folder, large), HasSubstr("larger than 16 MiB"));
}

TEST(Files, AllMistakesAreReportedTogether) {
  const SampleFolder folder;
  const std::string path =
      folder.write("r.yaml", "chips: many\nformat: bf61\nchip: alpah\nefficency: 1\n");
  try {
    config::load<Rack>(path, folder.library());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.diagnostics().size(), 4u) << error.what();
  }
}

TEST(Diagnostics, AreRenderedWithTheLineAndMarks) {
  Diagnostics diagnostics;
  diagnostics.add_source("nvl72.yaml", "a: 1\n      hbm_bandwith: 8 TB/s\n");
  diagnostics.error({"nvl72.yaml", 2, 7}, 12, "unknown key 'hbm_bandwith' in memory", "bandwidth",
                    {"allowed: capacity, bandwidth, kind"});
  diagnostics.warning({"nvl72.yaml", 1, 4}, 1, "odd");
  EXPECT_EQ(diagnostics.render(),
            "nvl72.yaml:1:4: warning: odd\n"
            "    1 | a: 1\n"
            "      |    ^\n"
            "nvl72.yaml:2:7: error: unknown key 'hbm_bandwith' in memory; did you mean "
            "'bandwidth'?\n"
            "    2 |       hbm_bandwith: 8 TB/s\n"
            "      |       ^~~~~~~~~~~~\n"
            "   = allowed: capacity, bandwidth, kind\n");
  EXPECT_EQ(diagnostics.render_warnings(),
            "nvl72.yaml:1:4: warning: odd\n    1 | a: 1\n      |    ^\n");
  EXPECT_THROW(diagnostics.throw_if_errors(), ConfigError);
}

TEST(Diagnostics, LongLinesAreCutAroundTheMark) {
  Diagnostics diagnostics;
  diagnostics.add_source("f", std::string(5000, 'x') + "HERE" + std::string(5000, 'y'));
  diagnostics.error({"f", 1, 5001}, 4, std::string(10000, 'm'));
  const std::string text = diagnostics.render();
  EXPECT_LT(text.size(), 1500u);
  EXPECT_THAT(text, HasSubstr("xHEREy"));
}

TEST(Diagnostics, MarksCountCharactersNotBytes) {
  Diagnostics diagnostics;
  diagnostics.add_source("f", "\xC2\xB5: x\n");
  diagnostics.error({"f", 1, 5}, 1, "m");
  EXPECT_EQ(diagnostics.render(), "f:1:5: error: m\n    1 | \xC2\xB5: x\n      |    ^\n");
}

}  // namespace
}  // namespace orrery::load_test
