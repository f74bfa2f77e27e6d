// SPDX-License-Identifier: Apache-2.0
#include "sim/results/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <locale>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "sim/results/answer.h"
#include "sim/results/json_table.h"

namespace orrery::table_test {
namespace {

TEST(FormatSi, GivesThreeDigitsAndAPrefix) {
  EXPECT_EQ(format_si(1.7234, "s"), "1.72 s");
  EXPECT_EQ(format_si(41.23e9, "B"), "41.2 GB");
  EXPECT_EQ(format_si(8e12, "B/s"), "8.00 TB/s");
  EXPECT_EQ(format_si(989.4e12, "FLOP/s"), "989 TFLOP/s");
  EXPECT_EQ(format_si(12345, ""), "12.3 k");
  EXPECT_EQ(format_si(12345, "tokens/s"), "12.3 k tokens/s");
  EXPECT_EQ(format_si(12, "tokens/s"), "12.0 tokens/s");
  EXPECT_EQ(format_si(-2.5e-6, "s"), "-2.50 us");
  EXPECT_EQ(format_si(0, "s"), "0 s");
}

TEST(FormatSi, DoesNotPrintTheUnitOne) {
  EXPECT_EQ(format_si(0.4567, "1"), "0.457");
  EXPECT_EQ(format_si(12345, "1"), "12.3 k");
  EXPECT_EQ(format_si(12345, "1/s"), "12.3 k/s");
  EXPECT_EQ(format_si(12, "1/s"), "12.0 /s");
}

TEST(FormatSi, RoundsUpIntoTheNextPrefix) {
  EXPECT_EQ(format_si(999.4, "B"), "999 B");
  EXPECT_EQ(format_si(999.6, "B"), "1.00 kB");
  EXPECT_EQ(format_si(0.9996e-3, "s"), "1.00 ms");
}

TEST(FormatSi, StaysWithinThePrefixesOfTheUnit) {
  EXPECT_EQ(format_si(123456, "s"), "123000 s");  // nobody reads kiloseconds
  EXPECT_EQ(format_si(1.5e-15, "s"), "0.00150 ps");
  EXPECT_EQ(format_si(0.0042, "USD"), "0.00420 USD");  // nor millidollars
  EXPECT_EQ(format_si(0.5, "B"), "0.500 B");
}

TEST(FormatSi, SaysWhenThereIsNoNumber) {
  EXPECT_EQ(format_si(std::numeric_limits<double>::infinity(), "s"), "inf s");
  EXPECT_EQ(format_si(std::numeric_limits<double>::quiet_NaN(), ""), "nan");
}

class CommaPunctuation : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(FormatSi, DoesNotDependOnTheLocale) {
  const std::locale before =
      std::locale::global(std::locale(std::locale::classic(), new CommaPunctuation));
  EXPECT_EQ(format_si(1.72, "s"), "1.72 s");
  EXPECT_EQ(format_si(1234567, "s"), "1230000 s");
  std::locale::global(before);
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("µs"), 2u);
  EXPECT_EQ(display_width("e\u0301"), 1u);   // e and a combining accent
  EXPECT_EQ(display_width("模型"), 4u);      // wide
  EXPECT_EQ(display_width("\xff\x80"), 1u);  // not UTF-8: no crash
}

TEST(Table, RefusesRowsOfAnotherLength) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), std::logic_error);
}

TEST(Table, TitlesBehindAnAngleAreThoseOfRightAlignedColumns) {
  const Table table = Table::titled("input | >at least | holds");
  ASSERT_EQ(table.columns().size(), 3U);
  EXPECT_EQ(table.columns()[1].title, "at least");
  EXPECT_EQ(table.columns()[1].align, Table::Align::kRight);
  EXPECT_EQ(table.columns()[2].title, "holds");
  EXPECT_EQ(table.columns()[2].align, Table::Align::kLeft);
}

TEST(JsonTable, HasARowOfEachObjectWithUnits) {
  const nlohmann::ordered_json rows = {
      {{"name", "gemm"}, {"runs", 12345}, {"bytes", 41.23e9}, {"share", 0.123}, {"size", 12345}},
      {{"name", "wait"}, {"runs", 1}, {"bytes", nullptr}, {"time_s", HUGE_VAL}, {"exact", 0.5}}};
  const Table table = json_table(
      rows,
      "kernel = name | >kind = name | count = runs count | moved = bytes B | time = time_s s | "
      "share = share percent | size = size plain | exact = exact number");
  EXPECT_EQ(table.columns()[0].align, Table::Align::kLeft);
  EXPECT_EQ(table.columns()[1].title, "kind");
  EXPECT_EQ(table.columns()[1].align, Table::Align::kRight);
  EXPECT_EQ(table.columns()[2].align, Table::Align::kRight);
  using Cells = std::vector<std::string>;
  EXPECT_EQ(table.rows()[0],
            (Cells{"gemm", "gemm", "12345", "41.2 GB", "-", "12.3 %", "12.3 k", "-"}));
  EXPECT_EQ(table.rows()[1], (Cells{"wait", "wait", "1", "-", "never", "-", "-", "0.5"}));
}

TEST(Answer, ATableWithoutRowsDoesNotStandBelow) {
  Answer answer;
  answer.add_below(Table::titled("input | >value"));
  EXPECT_TRUE(answer.parts.empty());
  auto rows = nlohmann::ordered_json::array();
  rows.push_back({{"name", "a"}});
  answer.add_below(json_table(rows, "input = name"));
  EXPECT_EQ(answer.parts.size(), 2U);
}

}  // namespace
}  // namespace orrery::table_test
