// SPDX-License-Identifier: Apache-2.0
// Relations between the fields of a struct, and what follows from them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/config/load.h"

namespace orrery::relations_test {
namespace {

using testing::HasSubstr;

struct Rectangle {
  int width = 0, height = 0;
  int area = 0;  // follows
  static const config::Schema<Rectangle>& schema() {
    static const auto schema =
        config::Schema<Rectangle>("rectangle", "a test")
            .required("width", &Rectangle::width, "")
            .required("height", &Rectangle::height, "")
            .check(
                [](const Rectangle& r) {
                  return r.width >= r.height
                             ? std::string()
                             : std::to_string(r.height) + " is above " + std::to_string(r.width);
                },
                "height")
            .derive([](Rectangle& r) { r.area = r.width * r.height; });
    return schema;
  }
};

Rectangle read(const std::string& yaml, config::Diagnostics& diagnostics) {
  const config::Node node = config::parse_yaml(yaml, "test.yaml", diagnostics);
  return config::read<Rectangle>(node, diagnostics, config::Library("nowhere"));
}

TEST(Relations, AMessageMayTellTheValues) {
  config::Diagnostics diagnostics;
  const Rectangle r = read("{width: 3, height: 4}", diagnostics);
  EXPECT_THAT(diagnostics.render(), HasSubstr("4 is above 3"));
  EXPECT_EQ(r.area, 0);  // nothing follows from what does not hold
}

TEST(Relations, WhatFollowsIsSetOnceTheFieldsAreRead) {
  config::Diagnostics diagnostics;
  EXPECT_EQ(read("{width: 4, height: 3}", diagnostics).area, 12);
  EXPECT_EQ(diagnostics.render(), "");
}

}  // namespace
}  // namespace orrery::relations_test
