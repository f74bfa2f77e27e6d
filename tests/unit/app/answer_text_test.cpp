// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/answer_text.h"

#include <gtest/gtest.h>

#include <sstream>

namespace orrery::answer_text_test {
namespace {

TEST(AnswerText, AlignsNumbersRightAndTextLeft) {
  Table table({{"kernel"}, {"time", Table::Align::kRight}, {"bound"}});
  table.add_row({"µ-gemm", "1.72 s", "compute"});
  table.add_row({"模", "12 ns", "io"});
  std::ostringstream out;
  print(table, out);
  EXPECT_EQ(out.str(),
            "kernel    time  bound\n"
            "µ-gemm  1.72 s  compute\n"
            "模       12 ns  io\n");
}

TEST(AnswerText, WritesEscapesOnlyInColour) {
  Table table({{"a"}});
  table.add_row({"1"});
  std::ostringstream plain, coloured;
  print(table, plain);
  print(table, coloured, true);
  EXPECT_EQ(plain.str(), "a\n1\n");
  EXPECT_EQ(coloured.str(), "\033[1ma\033[0m\n1\n");
}

TEST(AnswerText, HasItsPartsInOrder) {
  Table table({{"a"}});
  table.add_row({"1"});
  Answer all{.parts = {"first\n"}, .json = {}}, more{.parts = {table, "last\n"}, .json = {}};
  all.add(more);
  std::ostringstream out;
  print(all, out);
  EXPECT_EQ(out.str(), "first\na\n1\nlast\n");
}

}  // namespace
}  // namespace orrery::answer_text_test
