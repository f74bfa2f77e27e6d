// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/config/sample.h"

namespace orrery::mistakes_test {
namespace {

using config::Diagnostic;
using config::Diagnostics;

/// A rack file with one mistake: where it must be found, what must be said, what must be offered.
struct Mistake {
  const char* name;
  std::string yaml;
  const char* position;  // "line:column"
  const char* message;   // part of it
  const char* suggestion = "";
};

std::string with_chip(const std::string& rest) { return "chip: alpha\n" + rest; }
std::string with_memory(const std::string& rest) { return "chip:\n  memory:\n" + rest; }

// The columns are counted by hand: "chips: x" has its value in column 8.
const Mistake kMistakes[] = {
    // Keys.
    {"KeyAtTheTop", with_chip("chipps: 8\n"), "2:1", "unknown key 'chipps' in rack", "chips"},
    {"KeySwappedLetters", with_chip("sede: 8\n"), "2:1", "unknown key 'sede' in rack", "seed"},
    {"KeyTwoEdits", with_chip("eficency: 0.5\n"), "2:1", "unknown key 'eficency'", "efficiency"},
    {"KeyOtherCase", with_chip("Format: fp8\n"), "2:1", "unknown key 'Format'", "format"},
    {"KeyOfNothingNear", with_chip("weather: 1\n"), "2:1", "unknown key 'weather' in rack", ""},
    {"KeyInMemory", with_memory("    capacity: 1 GB\n    bandwith: 8 TB/s\n"), "4:5",
     "unknown key 'bandwith' in memory", "bandwidth"},
    {"KeyInFlowMap", with_chip("cooling: {pwoer: 1 W}\n"), "2:11", "unknown key 'pwoer' in cooling",
     "power"},
    {"KeyInList", with_chip("layers:\n  - windw: 4\n"), "3:5", "unknown key 'windw' in layer",
     "window"},
    {"KeyInFact", with_memory("    capacity: {value: 1 GB, sourc: x}\n    bandwidth: 1 TB/s\n"),
     "3:29", "unknown key 'sourc' in capacity", "source"},
    {"KeyOfEnumMap",
     "chip:\n  memory: {capacity: 1 GB, bandwidth: 1 TB/s}\n  peak: {bf61: 1 TFLOP/s}\n", "3:10",
     "unknown key 'bf61' in peak", "bf16"},
    {"ExtendsWhereItCannotBe", with_chip("cooling: {extends: x, power: 1 W}\n"), "2:11",
     "unknown key 'extends' in cooling", ""},
    {"MissingAtTheTop", "name: r\n", "1:1", "missing key 'chip' in rack"},
    {"MissingInSection", "chip:\n  memory:\n    capacity: 1 GB\n", "2:3",
     "missing key 'bandwidth' in memory"},
    {"MissingInOptionalSection", with_chip("cooling: {liquid: true}\n"), "2:1",
     "missing key 'power' in cooling"},
    {"MissingFactValue", with_memory("    capacity: {source: x}\n    bandwidth: 1 TB/s\n"), "3:5",
     "missing key 'value' in capacity"},
    // Units.
    {"NoUnit", with_memory("    capacity: 1 GB\n    bandwidth: 900\n"), "4:16",
     "expected bandwidth (e.g. 900 GB/s, 3.2 Tb/s), got '900'"},
    {"OtherDimension", with_memory("    capacity: 1 GB\n    bandwidth: 900 GB\n"), "4:16",
     "got '900 GB', a data size"},
    {"UnitWithoutSlash", with_memory("    capacity: 1 GB\n    bandwidth: 900 GBs\n"), "4:16",
     "unknown unit 'GBs'", "GB/s"},
    {"UnitPs", with_memory("    capacity: 1 GB\n    bandwidth: 400 Gbps\n"), "4:16",
     "unknown unit 'Gbps'", "Gb/s"},
    {"UnitInFact", with_memory("    capacity: {value: 1 Gib}\n    bandwidth: 1 TB/s\n"), "3:23",
     "unknown unit 'Gib'", "GiB"},
    {"UnitOfNameplate",
     with_memory("    capacity: {value: 1 GB, nameplate: 2 s}\n    bandwidth: 1 TB/s\n"), "3:40",
     "got '2 s', a duration"},
    {"UnitInMap", with_chip("delays: {a: 3 usec}\n"), "2:13", "unknown unit 'usec'", "us"},
    {"UnitAlone", with_chip("budget: kW\n"), "2:9",
     "expected power (e.g. 700 W, 132 kW), got 'kW'"},
    {"QuantityIsText", with_chip("budget: lots\n"), "2:9", "expected power"},
    {"QuantityIsList", with_chip("budget: [1 W]\n"), "2:9",
     "expected power (e.g. 700 W, 132 kW), got a list"},
    {"QuantityIsMissing", with_memory("    capacity:\n    bandwidth: 1 TB/s\n"), "3:5",
     "expected data size (e.g. 80 GB, 64 GiB), got nothing"},
    {"UnitOnCount", with_chip("chips: 8 GB\n"), "2:8", "expected an integer, got '8 GB'"},
    // Numbers.
    {"Octal", with_chip("chips: 010\n"), "2:8", "'010' starts with 0"},
    {"OctalReal", with_chip("efficiency: 00.5\n"), "2:13", "'00.5' starts with 0"},
    {"Hexadecimal", with_chip("chips: 0x10\n"), "2:8", "'0x10' is hexadecimal"},
    {"Grouped", with_chip("seed: 1_000\n"), "2:7", "'1_000' has grouped digits"},
    {"GroupedQuantity", with_chip("budget: 1,000 W\n"), "2:9", "'1,000' has grouped digits"},
    {"Infinite", with_chip("efficiency: .inf\n"), "2:13", "expected a finite number, got '.inf'"},
    {"NotANumber", with_chip("efficiency: .nan\n"), "2:13", "expected a finite number, got '.nan'"},
    {"TooLargeForDouble", with_chip("efficiency: 1e999\n"), "2:13",
     "outside the range of a double"},
    {"TooLargeForInt", with_chip("chips: 3000000000\n"), "2:8", "'3000000000' does not fit"},
    {"TooLargeForInt64", with_chip("seed: 9223372036854775808\n"), "2:7",
     "too large for an integer"},
    {"FractionForInt", with_chip("chips: 1.5\n"), "2:8", "expected an integer, got '1.5'"},
    {"TextForInt", with_chip("chips: many\n"), "2:8", "expected an integer, got 'many'"},
    {"QuotedInt", with_chip("chips: '8'\n"), "2:8",
     "expected an integer, got text; remove the quotes"},
    {"QuotedReal", with_chip("efficiency: \"0.5\"\n"), "2:13", "remove the quotes"},
    {"Sexagesimal", with_chip("chips: 1:30\n"), "2:8", "expected a number, got '1:30'"},
    {"ListForInt", with_chip("chips: [8]\n"), "2:8", "expected an integer, got a list"},
    // Flags, names, texts.
    {"No", with_chip("cooled: no\n"), "2:9", "expected true or false, got 'no'", "false"},
    {"Yes", with_chip("cooled: yes\n"), "2:9", "expected true or false, got 'yes'", "true"},
    {"On", with_chip("cooled: on\n"), "2:9", "expected true or false, got 'on'", "true"},
    {"Off", with_chip("cooled: off\n"), "2:9", "expected true or false, got 'off'", "false"},
    {"UpperCaseTrue", with_chip("cooled: True\n"), "2:9", "expected true or false", "true"},
    {"FlagTypo", with_chip("cooled: flase\n"), "2:9", "expected true or false", "false"},
    {"FlagIsText", with_chip("cooled: 'true'\n"), "2:9", "remove the quotes"},
    {"EnumTypo", with_chip("format: bf61\n"), "2:9", "expected one of bf16, fp8, int8, got 'bf61'",
     "bf16"},
    {"EnumFarAway", with_chip("format: posit\n"), "2:9", "expected one of bf16, fp8, int8"},
    {"TextIsMap", with_chip("name: {a: b}\n"), "2:7", "expected text, got a map"},
    {"TextIsNothing", with_chip("name: ~\n"), "2:7", "expected text, got nothing"},
    // Structure.
    {"SectionIsText", "chip:\n  memory: lots\n", "2:11", "expected a map with the keys of memory"},
    {"ListIsNumber", with_chip("links: 4\n"), "2:8", "expected a list, got '4'", "[4]"},
    {"MapIsList", with_chip("delays: [1 s]\n"), "2:9", "expected a map, got a list"},
    {"ItemOfList", with_chip("links: [4, four]\n"), "2:12", "expected an integer, got 'four'"},
    {"TopIsList", "- a\n", "1:1", "expected a map with the keys of rack, got a list"},
    // Bounds and relations.
    {"BelowLow", with_chip("chips: 0\n"), "2:8", "'0' is out of bounds: expected at least 1"},
    {"AboveHigh", with_chip("efficiency: 1.1\n"), "2:13", "expected between 0 and 1"},
    {"NegativeQuantity", with_chip("budget: -5 W\n"), "2:9", "expected at least 0 W"},
    {"ZeroWherePositive", with_chip("cooling: {power: 0 W}\n"), "2:18", "expected above 0 W"},
    {"FactOutOfBounds", with_memory("    capacity: 1 PB\n    bandwidth: 1 TB/s\n"), "3:15",
     "expected between 1 KB and 10 TB"},
    {"ItemOutOfBounds", with_chip("links: [1, -1]\n"), "2:12", "expected at least 0"},
    {"NestedOutOfBounds", with_chip("layers: [{window: -1}]\n"), "2:19", "expected at least 0"},
    {"Relation", "chips: 3\nchip: {dies: 2, memory: {capacity: 1 GB, bandwidth: 1 TB/s}}\n", "1:8",
     "chips must be a multiple of dies"},
    // References.
    {"UnknownName", "chip: alpah\n", "1:7", "nothing named 'alpah' in chips", "alpha"},
    {"UnknownPath", "chip: ./alpha.yaml\n", "1:7", "no such file './alpha.yaml'"},
    {"UnknownExtends", "chip: {extends: gamma}\n", "1:17", "nothing named 'gamma' in chips"},
    {"ExtendsList", "chip: {extends: [alpha]}\n", "1:17", "'extends' wants a name or a path"},
    {"ReferenceIsList", "chip: [alpha]\n", "1:7",
     "expected a map with the keys of chip, got a list"},
    {"MissingFile", with_chip("trace: trace.csv\n"), "2:8", "no such file 'trace.csv'"},
    // YAML.
    {"DuplicateKey", with_chip("chips: 8\nchips: 9\n"), "3:1", "duplicate key 'chips'"},
    {"DuplicateInFlow", with_chip("delays: {a: 1 s, a: 2 s}\n"), "2:18", "duplicate key 'a'"},
    {"MergeKey", with_chip("extra: &d {a: 1 s}\ndelays:\n  <<: *d\n"), "4:3", "merge keys ('<<')"},
    {"Tag", with_chip("chips: !!int 8\n"), "2:8", "tags ('!name') are not supported"},
    {"TabIndentation", "chip:\n\tmemory: x\n", "2:1", "a tab in the indentation"},
    {"KeyIsAList", with_chip("? [a, b]\n: 1\n"), "2:3", "a key must be text"},
    {"UnclosedQuote", with_chip("name: 'rack\n"), "2:7", "a quote that is not closed"},
    {"SecondColon", with_chip("name: a: b\n"), "2:8", "not valid YAML"},
    {"SecondDocument", with_chip("---\nchips: 8\n"), "2:1", "a second document"},
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreFoundWhereTheyAreAndCorrected) {
  const Mistake& mistake = GetParam();
  const SampleFolder folder;
  const std::string path = folder.write("rack.yaml", mistake.yaml);
  Diagnostics diagnostics;
  const config::Library library = folder.library();
  const config::Node node = config::load_file(path, diagnostics, library);
  config::read<Rack>(node, diagnostics, library);
  ASSERT_EQ(diagnostics.error_count(), 1) << diagnostics.render();
  const Diagnostic& found = diagnostics.all().front();
  EXPECT_EQ(found.where.text(), path + ":" + mistake.position) << diagnostics.render();
  EXPECT_THAT(found.message, testing::HasSubstr(mistake.message));
  EXPECT_EQ(found.suggestion, mistake.suggestion) << found.message;
}

INSTANTIATE_TEST_SUITE_P(Seeded, Mistakes, testing::ValuesIn(kMistakes),
                         [](const auto& seeded) { return std::string(seeded.param.name); });

}  // namespace
}  // namespace orrery::mistakes_test
