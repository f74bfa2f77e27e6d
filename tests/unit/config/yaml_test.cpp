// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "sim/config/load.h"
#include "tests/unit/config/sample.h"

namespace orrery::config::yaml_test {
namespace {

using testing::HasSubstr;

/// All messages about a text called f.yaml.
std::string messages(const std::string& text, const std::string& name = "f.yaml") {
  Diagnostics diagnostics;
  parse_yaml(text, name, diagnostics);
  return diagnostics.render();
}

Node parsed(const std::string& text) {
  Diagnostics diagnostics;
  Node node = parse_yaml(text, "f.yaml", diagnostics);
  EXPECT_EQ(diagnostics.render(), "");
  return node;
}

TEST(Yaml, NodesKnowWhereTheyWereWritten) {
  const Node node = parsed("a: 1\nb:\n  - x\n  - {c: 'two words'}\n");
  EXPECT_EQ(node.find("a")->where().text(), "f.yaml:1:4");
  EXPECT_EQ(node.key_origin("b").text(), "f.yaml:2:1");
  EXPECT_EQ(node.at_path("b.0")->text(), "x");
  EXPECT_EQ(node.at_path("b.1.c")->where().text(), "f.yaml:4:9");
  EXPECT_TRUE(node.at_path("b.1.c")->quoted());
  EXPECT_EQ(node.at_path("b.1.c")->length(), 11);
  EXPECT_EQ(node.at_path("b.2"), nullptr);
  EXPECT_EQ(node.at_path("b.x"), nullptr);
  EXPECT_EQ(node.at_path("a.x"), nullptr);
}

TEST(Yaml, TextIsKeptAsWritten) {
  const Node node = parsed("a: 010\nb: no\nc: null\nd: ''\ne:\n");
  EXPECT_EQ(node.find("a")->text(), "010");
  EXPECT_EQ(node.find("b")->text(), "no");
  EXPECT_TRUE(node.find("c")->is_null());
  EXPECT_TRUE(node.find("d")->is_scalar());
  EXPECT_TRUE(node.find("e")->is_null());
}

TEST(Yaml, JsonIsYaml) {
  EXPECT_EQ(parsed("{\"a\": [1, {\"b\": null}]}").at_path("a.0")->text(), "1");
  EXPECT_EQ(messages("{\n\t\"a\": 1\n}\n", "f.json"), "");
}

TEST(Yaml, AByteOrderMarkIsSkipped) {
  EXPECT_EQ(parsed("\xEF\xBB\xBF"
                   "a: 1\n")
                .find("a")
                ->text(),
            "1");
}

TEST(Yaml, AliasesStandForTheirAnchor) {
  EXPECT_EQ(parsed("a: &x {b: 1}\nc: *x\n").at_path("c.b")->text(), "1");
  EXPECT_EQ(parsed("- &x 5\n- *x\n").items()[1].text(), "5");
}

TEST(Yaml, AliasBombsAreStopped) {
  // Nine levels of nine aliases stand for 9^9 = 387 million values in 200 bytes.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i <= 9; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int j = 1; j < 9; ++j) bomb += ", " + below;
    bomb += "]\n";
  }
  EXPECT_THAT(messages(bomb), HasSubstr("more than 1000000 values"));
}

TEST(Yaml, AnAliasOfItselfIsAnError) {
  EXPECT_THAT(messages("a: &x [*x]\n"), HasSubstr("an alias inside of what it stands for"));
}

TEST(Yaml, SixtyFourLevelsAreEnough) {
  EXPECT_EQ(messages(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_THAT(messages(std::string(65, '[') + std::string(65, ']')),
              HasSubstr("f.yaml:1:65: error: nested deeper than 64 levels"));
  EXPECT_THAT(messages(std::string(100000, '[')), HasSubstr("nested deeper than 64 levels"));
  std::string block;
  for (int i = 0; i < 70; ++i) block += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_THAT(messages(block), HasSubstr("f.yaml:65:65: error: nested deeper"));
}

TEST(Yaml, WhatIsNoTextIsRefusedWithItsPlace) {
  EXPECT_THAT(messages(std::string("a: 1\nb: \0\n", 10)),
              HasSubstr("f.yaml:2:4: error: the file contains a NUL"));
  EXPECT_THAT(messages("a: 1\nb: \xFF\n"), HasSubstr("f.yaml:2:4: error: the file is not UTF-8"));
  EXPECT_THAT(messages("a: \xC0\xAF\n"), HasSubstr("not UTF-8"));          // overlong '/'
  EXPECT_THAT(messages("a: \xED\xA0\x80\n"), HasSubstr("not UTF-8"));      // surrogate
  EXPECT_THAT(messages("a: \xF4\x90\x80\x80\n"), HasSubstr("not UTF-8"));  // above U+10FFFF
  EXPECT_THAT(messages("a: \xE2\x82"), HasSubstr("not UTF-8"));            // cut off
  EXPECT_THAT(messages("a: \x1B[31m\n"), HasSubstr("control character"));
  EXPECT_EQ(messages("a: \xC2\xB5s \xE2\x82\xAC \xF0\x9F\x98\x80\n"), "");
}

TEST(Yaml, AFileWithoutContentIsEmpty) {
  EXPECT_EQ(messages(""), "f.yaml: error: the file is empty\n");
  EXPECT_EQ(messages("# only a comment\n"), "f.yaml: error: the file is empty\n");
}

TEST(Yaml, TabsAreRefusedOnlyInTheIndentation) {
  EXPECT_THAT(messages("a:\n \tb: 1\n"), HasSubstr("f.yaml:2:2: error: a tab in the indentation"));
  EXPECT_EQ(messages("a:\t1\n"), "");
}

TEST(Yaml, LargeMapsLoadInLinearTime) {
  constexpr int kKeys = 50000;
  std::string text;
  for (int i = 0; i < kKeys; ++i) text += "key" + std::to_string(i) + ": 8 TB/s\n";
  const std::clock_t start = std::clock();
  const Node node = parsed(text);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(node.entries().size(), static_cast<std::size_t>(kKeys));
  EXPECT_NE(node.find("key49999"), nullptr);
  // 0.5 s of CPU time without optimisation, six times that with sanitizers; at 5 ms a look-up, as
  // in a linear tree of this size, it would be four minutes.
  EXPECT_LT(seconds, 10);
}

TEST(Yaml, ManyErrorsAreCountedNotShown) {
  std::string text = "a: 1\n";
  for (int i = 0; i < 50; ++i) text += "a: 1\n";
  const std::string shown = messages(text);
  EXPECT_THAT(shown, HasSubstr("f.yaml:21:1: error: duplicate key 'a'"));
  EXPECT_THAT(shown, testing::Not(HasSubstr("f.yaml:22:1")));
  EXPECT_THAT(shown, HasSubstr("and 30 more errors\n"));
}

TEST(Merge, MapsMergeAndTheRestReplaces) {
  const Node base = parsed("a: {b: 1, c: 2}\nl: [1, 2]\nf: {value: 1 W, source: old}\n");
  const Node over = parsed("a: {c: 3, d: 4}\nl: [5]\nf: {value: 2 W}\n");
  const Node merged = merge(base, over);
  EXPECT_EQ(merged.at_path("a.b")->text(), "1");
  EXPECT_EQ(merged.at_path("a.c")->text(), "3");
  EXPECT_EQ(merged.at_path("a.d")->text(), "4");
  EXPECT_EQ(merged.at_path("l")->items().size(), 1u);
  // The old source does not vouch for the new value.
  EXPECT_EQ(merged.at_path("f.value")->text(), "2 W");
  EXPECT_EQ(merged.at_path("f.source"), nullptr);
}

TEST(Node, ErasingKeepsTheOtherKeys) {
  Node node = parsed("a: 1\nb: 2\nc: 3\n");
  node.erase("a");
  node.erase("x");
  EXPECT_EQ(node.find("a"), nullptr);
  EXPECT_EQ(node.find("b")->text(), "2");
  EXPECT_EQ(node.find("c")->text(), "3");
  EXPECT_EQ(node.entries().size(), 2u);
}

}  // namespace
}  // namespace orrery::config::yaml_test
