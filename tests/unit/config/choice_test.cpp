// SPDX-License-Identifier: Apache-2.0
// Structs that are chosen by a key of their map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/config/override.h"

namespace orrery::choice_test {
namespace {

using testing::HasSubstr;

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
  std::string kind;
  static const config::Choices& choices();
  static const Shape* view(const std::string& kind, void* object);

 protected:
  explicit Shape(std::string name) : kind(std::move(name)) {}
};

struct Square final : Shape {
  Square() : Shape("square") {}
  double area() const override { return side * side; }
  double side = 2;
  static const config::Schema<Square>& schema() {
    static const auto schema =
        config::Schema<Square>("square", "of four equal sides")
            .optional("kind", static_cast<std::string Square::*>(&Shape::kind), "")
            .optional("side", &Square::side, "length", config::positive());
    return schema;
  }
};

struct Oblong final : Shape {
  Oblong() : Shape("oblong") {}
  double area() const override { return width * height; }
  double width = 0, height = 3;
  static const config::Schema<Oblong>& schema() {
    static const auto schema =
        config::Schema<Oblong>("oblong", "of two lengths")
            .optional("kind", static_cast<std::string Oblong::*>(&Shape::kind), "")
            .required("width", &Oblong::width, "length")
            .optional("height", &Oblong::height, "length");
    return schema;
  }
};

template <class T>
const config::Record& record_of() {
  return T::schema().record();
}

const config::Choices& Shape::choices() {
  static const config::Choices all{
      "kind", "square", {{"square", record_of<Square>}, {"oblong", record_of<Oblong>}}};
  return all;
}

const Shape* Shape::view(const std::string& kind, void* object) {
  if (kind == "square") return static_cast<Square*>(object);
  return static_cast<Oblong*>(object);
}

struct Drawing {
  std::optional<config::OneOf<Shape>> shape;
  static const config::Schema<Drawing>& schema() {
    static const auto schema = config::Schema<Drawing>("drawing", "of a shape")
                                   .optional("shape", &Drawing::shape, "which");
    return schema;
  }
};

struct Read {
  config::Node node;
  Drawing drawing;
};

/// @throws config::ConfigError
Read read(const std::string& text, const std::vector<std::string>& overrides = {}) {
  config::Diagnostics diagnostics;
  const config::Record& record = Drawing::schema().record();
  config::Node node = config::parse_yaml(text, "drawing.yaml", diagnostics);
  for (const std::string& assignment : overrides)
    config::apply_override(node, record, assignment, diagnostics, config::default_library());
  Read result{config::complete(node, record, diagnostics, config::default_library()), {}};
  config::fill(&result.drawing, result.node, record, diagnostics);
  diagnostics.throw_if_errors();
  return result;
}

std::string fault(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read(text, overrides);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(Choice, TheTagChoosesTheKeys) {
  EXPECT_EQ((*read("shape: {kind: oblong, width: 5}").drawing.shape)->area(), 15);
  EXPECT_EQ((*read("shape: {side: 5}").drawing.shape)->area(), 25);
  EXPECT_EQ(read("shape: {side: 5}").drawing.shape->name, "square");
  EXPECT_FALSE(read("{}").drawing.shape.has_value());
}

TEST(Choice, MistakesAreThoseOfTheChosenStruct) {
  EXPECT_THAT(fault("shape: {kind: oblong, side: 5}"), HasSubstr("unknown key 'side' in oblong"));
  EXPECT_THAT(fault("shape: {kind: oblong}"), HasSubstr("missing key 'width' in oblong"));
  EXPECT_THAT(fault("shape: {side: -1}"), HasSubstr("drawing.yaml:1:15"));
  EXPECT_THAT(fault("shape: {kind: oblog}"), HasSubstr("did you mean 'oblong'?"));
  EXPECT_THAT(fault("shape: {kind: [square]}"), HasSubstr("allowed: oblong, square"));
  EXPECT_THAT(fault("shape: 5"), HasSubstr("expected a map"));
}

TEST(Choice, OverridesMayChooseInAnyOrder) {
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"shape.kind=oblong", "shape.width=4"},
        std::vector<std::string>{"shape.width=4", "shape.kind=oblong"}})
    EXPECT_EQ((*read("shape: {}", order).drawing.shape)->area(), 12);
  EXPECT_THAT(fault("shape: {}", {"shape.width=4"}), HasSubstr("unknown key 'width' in square"));
}

// As a file does that extends another one.
TEST(Choice, AMapOfAnotherKindLeavesTheKeysOfTheOneBelow) {
  const auto laid = [](const std::string& over) {
    config::Diagnostics diagnostics;
    const config::Node node = config::merge(
        config::parse_yaml("shape: {kind: square, side: 5}", "below.yaml", diagnostics),
        config::parse_yaml(over, "over.yaml", diagnostics));
    const auto drawing = config::read<Drawing>(node, diagnostics, config::default_library());
    return std::pair(diagnostics.render(), drawing);
  };
  const auto [said, drawing] = laid("shape: {kind: oblong, width: 4}");
  EXPECT_EQ(said, "");
  EXPECT_EQ((*drawing.shape)->area(), 12);
  EXPECT_THAT(laid("shape: {width: 4}").first, HasSubstr("unknown key 'width' in square"));
  EXPECT_THAT(laid("shape: {kind: oblong, width: 4, side: 1}").first,
              HasSubstr("unknown key 'side' in oblong"));
}

TEST(Choice, AnOverrideOfTheKindLeavesTheKeysOfTheFile) {
  const std::string square = "shape: {kind: square, side: 5}";
  EXPECT_EQ((*read(square, {"shape.kind=oblong", "shape.width=4"}).drawing.shape)->area(), 12);
  EXPECT_EQ((*read(square, {"shape.width=4", "shape.kind=oblong"}).drawing.shape)->area(), 12);
  EXPECT_THAT(fault(square, {"shape.kind=oblong", "shape.width=4", "shape.side=1"}),
              HasSubstr("unknown key 'side' in oblong"));
}

TEST(Choice, KeysThatAllStructsHaveAreDescribedOnce) {
  std::vector<std::string> rows;
  for (const config::KeyHelp& key : config::describe_keys(Drawing::schema().record()))
    rows.push_back(key.path + "; " + key.help);
  EXPECT_THAT(rows, testing::ElementsAre("shape; which",
                                         "shape.kind; oblong: ", "shape.width; oblong: length",
                                         "shape.height; oblong: length",
                                         "shape.kind; square: ", "shape.side; square: length"));
}

TEST(Choice, EveryValueIsShownWithItsOrigin) {
  const auto leaves =
      config::flatten(read("shape: {kind: oblong, width: 5}").node, Drawing::schema().record());
  ASSERT_EQ(leaves.size(), 3U);
  EXPECT_EQ(leaves[0].path, "shape.kind");
  EXPECT_EQ(leaves[2].path, "shape.height");
  EXPECT_EQ(leaves[2].origin, "default");
}

TEST(Choice, TheFallbackWrittenOutMeansTheSame) {
  const config::Record& record = Drawing::schema().record();
  EXPECT_EQ(config::canonical(read("shape: {side: 5}").node, record),
            config::canonical(read("shape: {side: 5, kind: square}").node, record));
}

TEST(Choice, AKeyThatOneStructHasMayTellIt) {
  config::Choices told = Shape::choices();
  told.telling = {{"width", "oblong"}};
  const auto name = [&](const char* text) {
    config::Diagnostics diagnostics;
    return told.name_in(config::parse_yaml(text, "shape.yaml", diagnostics));
  };
  EXPECT_EQ(name("{width: 5}"), "oblong");
  EXPECT_EQ(name("{side: 5}"), "square");
  EXPECT_EQ(name("{kind: square, width: 5}"), "square");  // for the struct to refuse
}

/// A length, or how to find one.
struct Length {
  int fixed = 0, least = 0;
  static const config::Schema<Length>& schema() {
    static const auto schema = config::Schema<Length>("length", "of something")
                                   .shorthand("fixed")
                                   .optional("fixed", &Length::fixed, "", config::between(0, 9))
                                   .optional("least", &Length::least, "");
    return schema;
  }
};

struct Measured {
  Length length;
  static const config::Schema<Measured>& schema() {
    static const auto schema = config::Schema<Measured>("measured", "with a length")
                                   .optional("length", &Measured::length, "how long");
    return schema;
  }
};

int fixed_length(const std::string& text, const std::vector<std::string>& set = {}) {
  config::Diagnostics diagnostics;
  config::Node node = config::parse_yaml(text, "measured.yaml", diagnostics);
  for (const std::string& assignment : set)
    config::apply_override(node, Measured::schema().record(), assignment, diagnostics,
                           config::default_library());
  const auto read = config::read<Measured>(node, diagnostics, config::default_library());
  diagnostics.throw_if_errors();
  return read.length.fixed;
}

TEST(Shorthand, AValueStandsForAMapWithOneKey) {
  EXPECT_EQ(fixed_length("length: 5"), 5);
  EXPECT_EQ(fixed_length("length: {fixed: 5}"), 5);
  EXPECT_EQ(fixed_length("length: {fixed: 5}", {"length=6"}), 6);
  EXPECT_EQ(fixed_length("length: {least: 5}"), 0);
  try {
    fixed_length("length: 12");
    FAIL();
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("measured.yaml:1:9"));
  }
  const auto schema = config::json_schema(Measured::schema().record());
  EXPECT_EQ(
      schema.at("definitions").at("measured").at("properties").at("length").at("anyOf").size(), 2U);
}

TEST(Choice, TheSchemaHasAllStructs) {
  const auto schema = config::json_schema(Drawing::schema().record());
  EXPECT_TRUE(schema.at("definitions").contains("square"));
  EXPECT_TRUE(schema.at("definitions").contains("oblong"));
  std::vector<std::string> keys;
  for (const auto& key : config::describe_keys(Drawing::schema().record()))
    keys.push_back(key.path);
  EXPECT_THAT(keys, testing::IsSupersetOf({"shape", "shape.side", "shape.width"}));
}

}  // namespace
}  // namespace orrery::choice_test
