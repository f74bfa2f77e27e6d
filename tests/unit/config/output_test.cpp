// SPDX-License-Identifier: Apache-2.0
#include "sim/config/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/unit/config/sample.h"

namespace orrery::output_test {
namespace {

using config::Leaf;
using config::Node;
using Json = nlohmann::ordered_json;

const config::Record& record() { return Rack::schema().record(); }

Node completed(const SampleFolder& folder, const std::string& yaml) {
  config::Diagnostics diagnostics;
  const config::Library library = folder.library();
  Node node =
      config::complete(config::load_file(folder.write("rack.yaml", yaml), diagnostics, library),
                       record(), diagnostics, library);
  EXPECT_EQ(diagnostics.render(), "");
  return node;
}

Json canonical_of(const std::string& yaml) {
  const SampleFolder folder;
  return config::canonical(completed(folder, yaml), record());
}

TEST(Flatten, ListsEveryLeafWithItsOrigin) {
  const SampleFolder folder;
  const std::vector<Leaf> leaves =
      config::flatten(completed(folder, "chip: alpha\nlayers: [{window: 5}]\n"), record());
  const auto leaf = [&](const std::string& path) {
    const auto found = std::find_if(leaves.begin(), leaves.end(),
                                    [&](const Leaf& candidate) { return candidate.path == path; });
    return found == leaves.end() ? Leaf{} : *found;
  };
  EXPECT_EQ(leaf("chip.memory.capacity").text, "80 GB");
  EXPECT_EQ(leaf("chip.memory.capacity").value, 80e9);
  EXPECT_EQ(leaf("chip.memory.capacity").unit, "B");
  EXPECT_EQ(leaf("chip.memory.capacity").origin, folder.path("library/chips/alpha.yaml") + ":3:21");
  EXPECT_EQ(leaf("chip.peak.bf16").unit, "FLOP/s");
  EXPECT_EQ(leaf("layers.0.window").value, 5.0);
  EXPECT_EQ(leaf("chips").text, "8");
  EXPECT_EQ(leaf("chips").unit, "");
  EXPECT_EQ(leaf("chips").origin, "default");
  EXPECT_EQ(leaf("links.1").value, 4.0);
  EXPECT_EQ(leaf("format").text, "bf16");
  EXPECT_FALSE(leaf("format").value.has_value());
  EXPECT_EQ(leaf("budget").path, "");  // not given and without a default
}

TEST(Canonical, DependsOnTheMeaningNotOnTheText) {
  const Json terabytes =
      canonical_of("chip: {memory: {capacity: 80 GB, bandwidth: 8 TB/s}}\nchips: 1e1\nname: r\n");
  const Json gigabytes = canonical_of(
      "name: 'r'\nchips: 10\nchip:\n  memory:\n    bandwidth: {value: 64 Tb/s, source: x}\n"
      "    capacity: 80000 MB\n");
  EXPECT_EQ(terabytes.dump(), gigabytes.dump());
  EXPECT_NE(terabytes.dump(), canonical_of("chip: alpha\nname: r\nchips: 10\n").dump());
}

TEST(Canonical, DefaultsAreTheSameAsWrittenOut) {
  EXPECT_EQ(canonical_of("chip: alpha\n").dump(),
            canonical_of("chip: alpha\nchips: 8\nlinks: [4, 4]\ncooled: false\n").dump());
}

TEST(Canonical, HoldsSiNumbersUnderSortedKeys) {
  const Json json = canonical_of("chip: alpha\n");
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(json["chip"]["memory"]["capacity"], 80e9);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json.dump().find("datasheet"), std::string::npos);
}

TEST(Describe, NamesEveryKeyWithTypeAndDefault) {
  const std::vector<config::KeyHelp> rows = config::describe_keys(record());
  const auto row = [&](const std::string& path) {
    const auto found =
        std::find_if(rows.begin(), rows.end(),
                     [&](const config::KeyHelp& candidate) { return candidate.path == path; });
    return found == rows.end() ? config::KeyHelp{} : *found;
  };
  EXPECT_EQ(row("chip").type, "chip, or a name in chips");
  EXPECT_EQ(row("chip").fallback, "required");
  EXPECT_EQ(row("chip.memory.bandwidth").type,
            "bandwidth (B/s), with source, between 1 MB/s and 1 PB/s");
  EXPECT_EQ(row("efficiency").fallback, "0.9");
  EXPECT_EQ(row("links").fallback, "[4, 4]");
  EXPECT_EQ(row("layers[].window").help, "tokens");
  EXPECT_EQ(row("format").type, "one of bf16, fp8, int8");
  const std::string text = config::describe(record());
  for (const config::KeyHelp& each : rows) {
    EXPECT_NE(text.find("  " + each.path + " "), std::string::npos) << each.path;
  }
}

TEST(JsonSchema, DescribesTheFilesForEditors) {
  const Json schema = config::json_schema(record());
  EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
  const Json& file = schema["definitions"]["rack_file"];
  EXPECT_EQ(file["if"]["required"], Json::array({"extends"}));
  EXPECT_EQ(file["then"]["$ref"], "#/definitions/rack_overlay");
  EXPECT_EQ(file["else"]["$ref"], "#/definitions/rack");
  const Json& rack = schema["definitions"]["rack"];
  EXPECT_EQ(rack["type"], "object");
  EXPECT_EQ(rack["additionalProperties"], false);
  EXPECT_EQ(rack["required"], Json::array({"chip"}));
  EXPECT_FALSE(rack["properties"].contains("extends"));
  EXPECT_EQ(rack["properties"]["chips"], Json::parse(R"({"type": ["integer", "string"],
      "minimum": 1.0, "pattern": "^[-+]?[0-9]+(\\.[0-9]+)?[kMGT]$",
      "description": "accelerators", "default": 8})"));
  EXPECT_EQ(rack["properties"]["format"]["enum"], Json::array({"bf16", "fp8", "int8"}));
  EXPECT_EQ(rack["properties"]["cooled"]["type"], "boolean");
  EXPECT_EQ(rack["properties"]["chip"]["anyOf"][1]["$ref"], "#/definitions/chip_file");
  EXPECT_EQ(schema["definitions"]["memory"]["required"], Json::array({"capacity", "bandwidth"}));
}

TEST(JsonSchema, WhatALaidOverFileHasIsNotAskedOfTheOneOverIt) {
  const Json schema = config::json_schema(record());
  for (const auto& [name, definition] : schema["definitions"].items()) {
    const bool overlay = name.ends_with("_overlay");
    EXPECT_FALSE(overlay && definition.contains("required")) << name;
    EXPECT_EQ(definition.value("properties", Json::object()).contains("extends"), overlay) << name;
  }
  const Json& chip = schema["definitions"]["rack_overlay"]["properties"]["chip"];
  EXPECT_EQ(chip["anyOf"][1]["$ref"], "#/definitions/chip_overlay");
}

TEST(JsonSchema, ThePatternOfAQuantityAcceptsItsExamples) {
  const Json schema = config::json_schema(record());
  const Json& budget = schema["definitions"]["rack"]["properties"]["budget"];
  const Json& quantity = budget["anyOf"][0]["anyOf"][0];
  const std::regex pattern(quantity["pattern"].get<std::string>());
  ASSERT_FALSE(quantity["examples"].empty());
  for (const Json& example : quantity["examples"]) {
    EXPECT_TRUE(std::regex_match(example.get<std::string>(), pattern)) << example;
  }
  EXPECT_FALSE(std::regex_match("900 GB", pattern));
  EXPECT_FALSE(std::regex_match("900", pattern));
}

TEST(JsonSchema, EveryReferenceHasItsDefinition) {
  const Json schema = config::json_schema(record());
  const std::string text = schema.dump();
  const std::regex reference("#/definitions/([a-z_0-9]+)");
  int references = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), reference), end; match != end;
       ++match) {
    EXPECT_TRUE(schema["definitions"].contains((*match)[1].str())) << (*match)[1];
    ++references;
  }
  EXPECT_GE(references, 4);
}

TEST(Schema, MistakesInASchemaAreOurBugs) {
  config::Schema<Cooling> schema("cooling", "test");
  schema.optional("power", &Cooling::power, "twice");
  EXPECT_THROW(schema.optional("power", &Cooling::power, "twice"), std::logic_error);
  EXPECT_THROW(schema.optional("x", &Cooling::power, "", config::between(1, 2)), std::logic_error);
  EXPECT_THROW(schema.optional("x", &Cooling::power, "", config::at_least(Seconds(1))),
               std::logic_error);
  EXPECT_THROW(schema.optional("x", &Cooling::liquid, "", config::positive()), std::logic_error);
  EXPECT_THROW(schema.optional("extends", &Cooling::liquid, ""), std::logic_error);
  EXPECT_THROW(schema.reference("x", &Cooling::liquid, "chips", ""), std::logic_error);
  EXPECT_THROW(schema.check(
                   "m", [](const Cooling&) { return true; }, "none"),
               std::logic_error);
}

TEST(Library, NamesAreSortedAndPathsAreNotNames) {
  const SampleFolder folder;
  EXPECT_EQ(folder.library().names("chips"), (std::vector<std::string>{"alpha", "beta"}));
  EXPECT_TRUE(folder.library().names("nothing").empty());
  EXPECT_TRUE(config::Library::is_path("a/b"));
  EXPECT_TRUE(config::Library::is_path("a.yaml"));
  EXPECT_FALSE(config::Library::is_path("gpt-3.5"));
  EXPECT_EQ(folder.library().locate("chips", "x.yaml", "dir/f.yaml"), "dir/x.yaml");
  EXPECT_EQ(folder.library().locate("", "x", "dir/f.yaml"), "dir/x.yaml");
}

}  // namespace
}  // namespace orrery::output_test
