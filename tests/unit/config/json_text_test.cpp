// SPDX-License-Identifier: Apache-2.0
#include "sim/config/json_text.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace orrery::json_text_test {
namespace {

/// "byte: message" of a text that is refused.
std::string fault_of(const std::string& text) {
  try {
    config::parse_json(text);
  } catch (const config::JsonFault& fault) {
    return std::to_string(fault.byte) + ": " + fault.what();
  }
  return "none";
}

TEST(JsonText, IsParsed) { EXPECT_EQ(config::parse_json("{\"a\": [1]}").at("a").at(0), 1); }

TEST(JsonText, ThatIsNoneIsRefusedAtItsByte) {
  EXPECT_EQ(fault_of("{\"a\": NaN}"), "7: not valid JSON");
  EXPECT_EQ(fault_of(""), "1: not valid JSON");
}

TEST(JsonText, ANumberThatNoDoubleHoldsIsRefusedWhereItStands) {
  EXPECT_EQ(fault_of("{\"a\": 7E999}"), "7: the number 7E999 is too large");
  EXPECT_EQ(fault_of("[1, -1e400]"), "5: the number -1e400 is too large");
}

}  // namespace
}  // namespace orrery::json_text_test
