// SPDX-License-Identifier: Apache-2.0
#include "sim/config/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::config::csv_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> cells_of(CsvReader& reader) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < reader.columns().size(); ++i) cells.emplace_back(reader.cell(i));
  return cells;
}

/// What is said about a text whose records are all read.
std::string message_of(const std::string& text) {
  try {
    CsvReader reader("t.csv", text);
    while (reader.next()) {
    }
    reader.throw_if_errors();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Csv, QuotedCellsHoldCommasQuotesAndLineEnds) {
  CsvReader reader("t.csv", "a,b\r\n\"x,\"\"y\"\"\nz\",2\r\n\"\",3");
  EXPECT_THAT(reader.columns(), ElementsAre("a", "b"));
  EXPECT_EQ(reader.row(), "a,b");
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(cells_of(reader), ElementsAre("x,\"y\"\nz", "2"));
  EXPECT_EQ(reader.line(), 2);
  EXPECT_EQ(reader.row(), "\"x,\"\"y\"\"\nz\",2");
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(cells_of(reader), ElementsAre("", "3"));
  EXPECT_EQ(reader.line(), 4);
  EXPECT_FALSE(reader.next());
}

TEST(Csv, EmptyLinesAndTheByteOrderMarkAreNoCells) {
  CsvReader reader("t.csv",
                   "\xEF\xBB\xBF"
                   "\n\r\na,b\n\n1,2\n\r\n");
  EXPECT_EQ(reader.find("a"), 0U);
  EXPECT_EQ(reader.find("b"), 1U);
  EXPECT_EQ(reader.find("c"), std::nullopt);
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(cells_of(reader), ElementsAre("1", "2"));
  EXPECT_FALSE(reader.next());
  EXPECT_NO_THROW(reader.throw_if_errors());
}

TEST(Csv, RowsOfAnotherLengthAreNamedTogether) {
  const std::string message = message_of("a,b\n1,2\n3\n4,5,6\n");
  EXPECT_THAT(message, HasSubstr("t.csv:3:1: error: 1 cell, but there are 2 columns\n"
                                 "    3 | 3\n"
                                 "      | ^\n"));
  EXPECT_THAT(message, HasSubstr("t.csv:4:1: error: 3 cells, but there are 2 columns\n"
                                 "    4 | 4,5,6\n"
                                 "      | ^~~~~\n"));
}

TEST(Csv, RecordsMayEndEarlyWhereThatIsAsked) {
  CsvReader reader("t.csv", "a,b,c\n1\n1,2,3,4\n1,2,3\n", CsvRecords::kMayEndEarly);
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(cells_of(reader), ElementsAre("1", "", ""));
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(cells_of(reader), ElementsAre("1", "2", "3"));
  EXPECT_THROW(reader.throw_if_errors(), ConfigError);  // the record of four cells
}

TEST(Csv, AnErrorOfACellPointsToItInItsLine) {
  CsvReader reader("t.csv", "a,b\nx,\"y\nz\",\n12,345\n");
  while (reader.next()) {
    if (reader.line() == 4) reader.error(1, "odd");
  }
  try {
    reader.throw_if_errors();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("t.csv:4:4: error: odd\n"
                                        "    4 | 12,345\n"
                                        "      |    ^~~\n"));
  }
}

TEST(Csv, QuotesCloseAtTheEndOfTheCell) {
  EXPECT_THAT(message_of("a,b\n\"1,2\n"), HasSubstr("t.csv:2:1: error: a quote is not closed"));
  EXPECT_THAT(message_of("a,b\n\"1\"x,2\n"),
              HasSubstr("t.csv:2:4: error: text after the closing quote of a cell"));
}

TEST(Csv, AColumnIsNamedOnce) {
  EXPECT_THAT(message_of("a,b,a\n"), HasSubstr("t.csv:1:5: error: column 'a' is there twice"));
}

TEST(Csv, AFileIsThereAndHasAHeader) {
  EXPECT_THAT(message_of(""),
              HasSubstr("t.csv:1:1: error: the file is empty; the first line names the columns"));
  EXPECT_THAT(message_of("\n\n"),
              HasSubstr("t.csv:1:1: error: the file is empty; the first line names the columns"));
  EXPECT_THROW(read_csv("/nonexistent.csv"), ConfigError);
}

}  // namespace
}  // namespace orrery::config::csv_test
