// SPDX-License-Identifier: Apache-2.0
#include "sim/config/proportional.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/config/load.h"

namespace orrery::proportional_test {
namespace {

using config::Node;

const config::RegisterProportional registered_draw("test_cards", "test_draw");

Node parsed(const std::string& yaml, const std::string& file) {
  config::Diagnostics diagnostics;
  Node node = config::parse_yaml(yaml, file, diagnostics);
  EXPECT_EQ(diagnostics.render(), "");
  return node;
}

/// What `over` leaves of the draw of `base`: "500 W", or "500 W (source)".
std::string draw_of(const std::string& base, const std::string& over) {
  const Node merged = merge(parsed(base, "base.yaml"), parsed(over, "over.yaml"));
  const Node* draw = merged.find("test_draw");
  if (!draw->is_map()) return draw->text();
  return draw->find("value")->text() + " (" + draw->find("source")->text() + ")";
}

TEST(Proportional, AValueFollowsTheNumberThatAnOverlayChanges) {
  EXPECT_EQ(draw_of("{test_cards: 8, test_draw: 1000 W}", "{test_cards: 4}"),
            "500 W (derived: 1000 W x 4 / 8 test_cards)");
  EXPECT_EQ(draw_of("{test_cards: {value: 8, source: a}, test_draw: {value: 1.5 kW, source: b, "
                    "nameplate: 2 kW}}",
                    "{test_cards: {value: 16, source: c}}"),
            "3 kW (derived: 1.5 kW x 16 / 8 test_cards; b)");
}

TEST(Proportional, AValueThatTheOverlayWritesStays) {
  EXPECT_EQ(draw_of("{test_cards: 8, test_draw: 1000 W}", "{test_cards: 4, test_draw: 700 W}"),
            "700 W");
}

TEST(Proportional, NothingFollowsTheSameNumber) {
  EXPECT_EQ(draw_of("{test_cards: 8, test_draw: 1000 W}", "{test_cards: 8}"), "1000 W");
  EXPECT_EQ(draw_of("{test_cards: 8, test_draw: 1000 W}", "{other: 4}"), "1000 W");
}

// Halved twice: 8 to 4 to 2.
TEST(Proportional, EachOfAChainOfOverlaysScalesWhatTheOneBelowLeft) {
  const Node four = merge(parsed("{test_cards: 8, test_draw: 1000 W}", "base.yaml"),
                          parsed("{test_cards: 4}", "four.yaml"));
  const Node two = merge(four, parsed("{test_cards: 2}", "two.yaml"));
  EXPECT_EQ(two.at_path("test_draw.value")->text(), "250 W");
  // One that writes its own in between: 700 W of 4 are 350 W of 2.
  const Node own = merge(four, parsed("{test_draw: 700 W}", "own.yaml"));
  const Node half = merge(own, parsed("{test_cards: 2}", "two.yaml"));
  EXPECT_EQ(half.at_path("test_draw.value")->text(), "350 W");
}

TEST(Proportional, ValuesThatAreNoNumbersAreLeftToTheirSchema) {
  EXPECT_EQ(draw_of("{test_cards: 8, test_draw: much}", "{test_cards: 4}"), "much");
  EXPECT_EQ(draw_of("{test_cards: 8, test_draw: 1 kW}", "{test_cards: few}"), "1 kW");
  EXPECT_EQ(draw_of("{test_cards: 0, test_draw: 1 kW}", "{test_cards: 4}"), "1 kW");
}

}  // namespace
}  // namespace orrery::proportional_test
