// SPDX-License-Identifier: Apache-2.0
#include "sim/units/printable.h"

#include <gtest/gtest.h>

namespace orrery::printable_test {
namespace {

TEST(Printable, ControlCharactersAreWrittenOut) {
  EXPECT_EQ(printable("\x1b[31mred\x07\x7f"), "\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(printable("two\nlines\tand a tab"), "two\\x0alines\\x09and a tab");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\x9b"
            "2J");  // the one-character CSI
}

TEST(Printable, OtherTextStaysAsItIs) {
  EXPECT_EQ(printable("4 \xc2\xb5s, \xc3\xa9t\xc3\xa9 \xe2\x82\xac"),
            "4 \xc2\xb5s, \xc3\xa9t\xc3\xa9 \xe2\x82\xac");
  EXPECT_EQ(printable("two\nlines", "\n"), "two\nlines");
}

}  // namespace
}  // namespace orrery::printable_test
