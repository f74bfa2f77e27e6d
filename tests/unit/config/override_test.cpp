// SPDX-License-Identifier: Apache-2.0
#include "sim/config/override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/output.h"
#include "tests/unit/config/sample.h"

namespace orrery::override_test {
namespace {

using config::Diagnostics;
using config::Node;
using testing::HasSubstr;

/// A rack file after some `--set`, and what was said about it.
struct Outcome {
  Rack rack;
  Node completed;
  std::string messages;
};

Outcome with(const std::vector<std::string>& assignments,
             const std::string& yaml = "chip: alpha\n") {
  const SampleFolder folder;
  const config::Library library = folder.library();
  const config::Record& record = Rack::schema().record();
  Diagnostics diagnostics;
  Node node = config::load_file(folder.write("rack.yaml", yaml), diagnostics, library);
  for (const std::string& assignment : assignments) {
    config::apply_override(node, record, assignment, diagnostics, library);
  }
  Outcome outcome;
  if (!diagnostics.has_errors()) {
    outcome.completed = config::complete(node, record, diagnostics, library);
    config::fill(&outcome.rack, outcome.completed, record, diagnostics);
  }
  outcome.messages = diagnostics.render();
  return outcome;
}

TEST(Override, ReplacesAValueInsideOfAReferencedFile) {
  const Outcome outcome = with({"chip.memory.bandwidth=4 TB/s"});
  EXPECT_EQ(outcome.messages, "");
  EXPECT_EQ(outcome.rack.chip.memory.bandwidth.value, BytesPerSecond(4e12));
  EXPECT_EQ(outcome.rack.chip.memory.capacity.value, Bytes(80e9));
  EXPECT_EQ(outcome.completed.at_path("chip.memory.bandwidth")->origin().text(), "--set");
}

TEST(Override, AddsWhatTheFileLeavesOut) {
  const Outcome outcome =
      with({"cooling.power=3 kW", "delays.boot=5 s", "chip.peak.fp8=600 TFLOP/s", "links=[1, 2]",
            "links.1=9", "extra.a.b=x"});
  EXPECT_EQ(outcome.messages, "");
  EXPECT_EQ(outcome.rack.cooling->power, Watts(3000));
  EXPECT_EQ(outcome.rack.delays.at("boot"), Seconds(5));
  EXPECT_EQ(outcome.rack.chip.peak.at(Format::kFp8).value, FlopsPerSecond(600e12));
  EXPECT_EQ(outcome.rack.links, (std::vector<int>{1, 9}));
  EXPECT_EQ(outcome.rack.extra.at_path("a.b")->text(), "x");
}

TEST(Override, LaterOnesWin) {
  EXPECT_EQ(with({"chips=2", "chips=4"}).rack.chips, 4);
  EXPECT_EQ(with({"chip.memory.bandwidth=4 TB/s", "chip=beta"}).rack.chip.memory.bandwidth.value,
            BytesPerSecond(3e12));
}

TEST(Override, ReplacesAReferenceByAnother) { EXPECT_EQ(with({"chip=beta"}).rack.chip.id, "beta"); }

TEST(Override, AFactLosesItsSourceWithItsValue) {
  const Outcome outcome = with({"chip.memory.capacity=96 GB"});
  EXPECT_EQ(outcome.rack.chip.memory.capacity.value, Bytes(96e9));
  EXPECT_EQ(outcome.rack.chip.memory.capacity.source, "");
  EXPECT_EQ(with({"chip.memory.bandwidth.source=paper"}).rack.chip.memory.bandwidth.source,
            "paper");
}

TEST(Override, AnEmptyValueIsNothing) {
  EXPECT_FALSE(with({"cooling="}, "chip: alpha\ncooling: {power: 1 W}\n").rack.cooling.has_value());
}

TEST(Override, AppliesToACompletedConfiguration) {
  const SampleFolder folder;
  const config::Library library = folder.library();
  const config::Record& record = Rack::schema().record();
  Diagnostics diagnostics;
  Node node = config::complete(
      config::load_file(folder.write("rack.yaml", "chip: alpha\n"), diagnostics, library), record,
      diagnostics, library);
  config::apply_override(node, record, "links.0=7", diagnostics, library);
  const Rack rack = config::read<Rack>(node, diagnostics, library);
  EXPECT_EQ(diagnostics.render(), "");
  EXPECT_EQ(rack.links, (std::vector<int>{7, 4}));
  EXPECT_EQ(rack.chips, 8);
}

TEST(Override, AValueOfAnotherFileKeepsItsOrigin) {
  const SampleFolder folder;
  const config::Library library = folder.library();
  Diagnostics diagnostics;
  const Node sweep = config::parse_yaml("chipps: 3\n", "sweep.yaml", diagnostics);
  Node node = config::parse_yaml("chip: alpha\n", "rack.yaml", diagnostics);
  const Node::Entry& entry = sweep.entries().front();
  config::apply_override(node, Rack::schema().record(), {entry.key, entry.value, entry.key_origin},
                         diagnostics, library);
  EXPECT_EQ(diagnostics.render(),
            "sweep.yaml:1:1: error: unknown key 'chipps' in rack; did you mean 'chips'?\n"
            "    1 | chipps: 3\n"
            "      | ^~~~~~\n"
            "   = allowed: name, chip, chips, seed, efficiency, cooled, format, links, delays, "
            "cooling, budget, layers, trace, extra\n");
}

TEST(Alias, IsAnotherNameForAKey) {
  const Outcome outcome =
      with({}, "chip: alpha\naccelerators: 3\ncooling_power: 2 kW\ncooling: {liquid: false}\n");
  EXPECT_EQ(outcome.messages, "");
  EXPECT_EQ(outcome.rack.chips, 3);
  EXPECT_EQ(outcome.rack.cooling->power, Watts(2000));
  EXPECT_FALSE(outcome.rack.cooling->liquid);
  EXPECT_EQ(outcome.completed.find("accelerators"), nullptr);
}

TEST(Alias, IsOverriddenByItsKeyAndTheOtherWayRound) {
  EXPECT_EQ(with({"chips=5"}, "chip: alpha\naccelerators: 3\n").rack.chips, 5);
  EXPECT_EQ(with({"accelerators=5"}, "chip: alpha\nchips: 3\n").rack.chips, 5);
  EXPECT_EQ(with({"cooling_power=3 kW"}).rack.cooling->power, Watts(3000));
}

TEST(Alias, BesideItsKeyIsAnError) {
  EXPECT_THAT(with({}, "chip: alpha\nchips: 2\naccelerators: 3\n").messages,
              HasSubstr("rack.yaml:3:1: error: 'accelerators' is another name of 'chips', which is "
                        "given too"));
  EXPECT_THAT(with({}, "chip: alpha\ncooling: 2 kW\ncooling_power: 3 kW\n").messages,
              HasSubstr("'cooling_power' is another name of 'cooling.power', which is given too"));
}

struct BadOverride {
  const char* name;
  const char* assignment;
  const char* message;
};

class BadOverrides : public testing::TestWithParam<BadOverride> {};

TEST_P(BadOverrides, AreErrorsThatCiteTheOption) {
  const std::string messages = with({GetParam().assignment}).messages;
  EXPECT_THAT(messages, testing::StartsWith("--set " + std::string(GetParam().assignment)));
  EXPECT_THAT(messages, HasSubstr(GetParam().message));
}

constexpr BadOverride kBadOverrides[] = {
    {"KeyTypo", "chipp.memory.bandwidth=1 TB/s",
     "unknown key 'chipp' in rack; did you mean 'chip'?"},
    {"DeepKeyTypo", "chip.memory.bandwith=1 TB/s",
     "unknown key 'bandwith' in memory; did you mean 'bandwidth'?"},
    {"EnumKeyTypo", "chip.peak.bf61=1 TFLOP/s", "unknown key 'bf61' in peak; did you mean 'bf16'?"},
    {"FactKeyTypo", "chip.memory.capacity.valeu=1 GB", "did you mean 'value'?"},
    {"NoEquals", "chips", "expected PATH=VALUE"},
    {"NoPath", "=3", "expected PATH=VALUE"},
    {"EmptyPart", "chip..memory=3", "unknown key '' in chip"},
    {"IndexTooLarge", "links.0=1", "'0' is no item of links, a list of 0 counted from 0"},
    {"IndexIsText", "layers.x.window=1", "'x' is no item of layers"},
    {"BelowAValue", "chips.more=1", "'chips' is a value and has no key 'more'"},
    {"UnknownName", "chip=alpah", "nothing named 'alpah' in chips; did you mean 'alpha'?"},
    {"NoUnit", "chip.memory.bandwidth=4", "expected bandwidth (e.g. 900 GB/s, 3.2 Tb/s), got '4'"},
    {"OutOfBounds", "efficiency=2", "'2' is out of bounds: expected between 0 and 1"},
    {"BadYaml", "links=[1, 2", "not valid YAML"},
};

INSTANTIATE_TEST_SUITE_P(Seeded, BadOverrides, testing::ValuesIn(kBadOverrides),
                         [](const auto& seeded) { return std::string(seeded.param.name); });

TEST(Override, CannotCrossADanglingReference) {
  EXPECT_THAT(with({"chip.dies=2"}, "chip: alpah\n").messages,
              HasSubstr("rack.yaml:1:7: error: nothing named 'alpah' in chips"));
}

}  // namespace
}  // namespace orrery::override_test
