// SPDX-License-Identifier: Apache-2.0
#include "host/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace orrery::measure::table_test {
namespace {

TEST(Table, IsWrittenHeaderFirst) {
  Table table({"name", "size_bytes", "latency_us"});
  table.add_row({std::string("copy"), std::int64_t{4096}, 2.5});
  EXPECT_EQ(to_csv(table), "name,size_bytes,latency_us\ncopy,4096,2.5\n");
}

TEST(Table, QuotesCommasQuotesAndLineBreaks) {
  Table table({"a,b", "text"});
  table.add_row({std::string("say \"hi\""), std::string("two\nlines")});
  EXPECT_EQ(to_csv(table), "\"a,b\",text\n\"say \"\"hi\"\"\",\"two\nlines\"\n");
}

TEST(Table, NumbersReadBackExactly) {
  for (const double value : {0.1, 1.0 / 3.0, 6.02214076e23, 5e-324, 4.8e12, 0.000123}) {
    Table table({"x"});
    table.add_row({value});
    const std::string text = to_csv(table);
    EXPECT_EQ(std::strtod(text.c_str() + 2, nullptr), value) << text;
  }
  Table table({"n"});
  table.add_row({std::numeric_limits<std::int64_t>::min()});
  EXPECT_EQ(to_csv(table), "n\n-9223372036854775808\n");
}

TEST(Table, WhatIsNotKnownReadsBackAsNotANumber) {
  Table table({"x"});
  table.add_row({std::numeric_limits<double>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(std::strtod(to_csv(table).c_str() + 2, nullptr)));
}

TEST(Table, RefusesARowOfAnotherLength) {
  Table table({"a", "b"});
  EXPECT_THROW(table.add_row({1.0}), std::logic_error);
  EXPECT_THROW(table.add_row({1.0, 2.0, 3.0}), std::logic_error);
  EXPECT_TRUE(table.rows().empty());
}

TEST(Table, AMirrorHoldsEveryRowAsSoonAsItIsAdded) {
  std::ostringstream out;
  Table table({"a", "b"});
  table.mirror(out);
  EXPECT_EQ(out.str(), "a,b\n");
  table.add_row({1.0, std::string("x")});
  EXPECT_EQ(out.str(), to_csv(table));
  EXPECT_THROW(table.mirror(out), std::logic_error);
}

}  // namespace
}  // namespace orrery::measure::table_test
