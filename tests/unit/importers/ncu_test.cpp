// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery::ncu_test {
namespace {

using testing::HasSubstr;

using Ncu = Scratch;

TEST_F(Ncu, DetailsAreOneRowALaunch) {
  const ImportedTable table = import_file("ncu", sample("ncu_details.csv"), {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "launch"), "0");
  EXPECT_EQ(cell(table, 0, "name"), "void gemm<float, 4>(float *, int)");
  EXPECT_EQ(cell(table, 0, "duration_ns"), "1152190");       // 1,152.19 us
  EXPECT_EQ(cell(table, 0, "dram_read_bytes"), "33570000");  // 33.57 Mbyte
  EXPECT_EQ(cell(table, 0, "dram_written_bytes"), "");
  EXPECT_EQ(cell(table, 0, "sm_clock_hz"), "1750000000");
  EXPECT_EQ(cell(table, 0, "grid"), "132x2x1");
  EXPECT_EQ(cell(table, 0, "block"), "128x1x1");
  EXPECT_EQ(cell(table, 1, "name"), "copy");
  EXPECT_EQ(cell(table, 1, "duration_ns"), "2400");
  EXPECT_EQ(cell(table, 1, "dram_read_bytes"), "");  // n/a
}

TEST_F(Ncu, TheRawPageHasItsUnitsInTheSecondRow) {
  const ImportedTable table = import_file("ncu", sample("ncu_raw.csv"), {});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "name"), "softmax");
  EXPECT_EQ(cell(table, 0, "duration_ns"), "2500000");         // 2.5 ms
  EXPECT_EQ(cell(table, 0, "dram_read_bytes"), "1250000000");  // 1.25 Gbyte
  EXPECT_EQ(cell(table, 0, "dram_written_bytes"), "1024500");  // 1,024.5 Kbyte
  EXPECT_EQ(cell(table, 0, "sm_clock_hz"), "1410700000");      // 1,410.7 cycles a us
  EXPECT_EQ(cell(table, 0, "grid"), "64x1x1");
}

/// A table of one launch whose durations have these texts, with a unit and the label.
std::string durations(const std::vector<std::string>& texts) {
  std::string csv = "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    csv += "\"" + std::to_string(i) + "\",\"k\",\"Duration\",\"ns\",\"" + texts[i] + "\"\n";
  }
  return csv;
}

TEST_F(Ncu, MarksOfNumbersFollowFromThoseThatAreRightWithOneAlone) {
  const auto first = [this](const std::vector<std::string>& texts, const std::string& mark = "") {
    return cell(import_file("ncu", write("t.csv", durations(texts)), {"", "", 0, mark}), 0,
                "duration_ns");
  };
  EXPECT_EQ(first({"1,234,567.5"}), "1234567.5");
  EXPECT_EQ(first({"1.234.567,5"}), "1234567.5");
  EXPECT_EQ(first({"9,00"}), "9");
  EXPECT_EQ(first({"864"}), "864");
  EXPECT_EQ(first({"1\u202f152,19"}), "1152.19");
  EXPECT_EQ(first({"117,344", "9.00"}), "117344");
  EXPECT_EQ(first({"117,344", "9,00"}), "117.344");
  EXPECT_EQ(first({"117.344", "9,00"}), "117344");
  EXPECT_EQ(first({"117.344", "1,234,567"}), "117.344");
  EXPECT_EQ(first({"117,344"}, "point"), "117344");
  EXPECT_EQ(first({"117,344"}, "comma"), "117.344");
}

TEST_F(Ncu, NumbersThatAreRightWithBothMarksAreRefused) {
  const auto message = [this](const std::vector<std::string>& texts, const std::string& mark = "") {
    return message_of([&] {
      import_file("ncu", write("t.csv", durations(texts)), {"", "", 0, mark});
    });
  };
  for (const char* value : {"117,344", "117.344"}) {
    EXPECT_THAT(message({value, "864"}),
                HasSubstr("t.csv:2:25: error: '" + std::string(value) +
                          "' may have a decimal mark or part thousands, and no other number of the "
                          "file tells which: say --decimal-mark point or comma"));
  }
  for (const char* value : {",123", "1.5,000", "-1", "x", "1,23,456"}) {
    EXPECT_THAT(message({value}), HasSubstr("t.csv:2:25: error: '" + std::string(value) +
                                            "' is not a number from 0 on"));
  }
  EXPECT_THAT(message({"9.00", "8.00", "7,0"}), HasSubstr("t.csv:4:25: error: '7,0' is not"));
  EXPECT_THAT(message({"1"}, "dot"), HasSubstr("--decimal-mark is point or comma, not 'dot'"));
}

TEST_F(Ncu, MarksShowInMetricsThatAreNotRead) {
  const ImportedTable table =
      import_file("ncu",
                  write("t.csv",
                        "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
                        "\"0\",\"k\",\"Duration\",\"ns\",\"117.344\"\n"
                        "\"0\",\"k\",\"Enabled TPC IDs\",\"\",\"0,1.5\"\n"
                        "\"0\",\"k\",\"L2 Hit Rate\",\"%\",\"66,7\"\n"),
                  {});
  EXPECT_EQ(cell(table, 0, "duration_ns"), "117344");
  EXPECT_EQ(cell(import_file("ncu",
                             write("t.csv",
                                   "\"ID\",\"Kernel Name\",\"dram__bytes_read.sum\",\"x\"\n"
                                   "\"\",\"\",\"byte\",\"cycle\"\n"
                                   "\"0\",\"k\",\"117.344\",\"1.234.567\"\n"),
                             {}),
                 0, "dram_read_bytes"),
            "117344");
}

TEST_F(Ncu, ByteOrderMarksAndTablesWithoutQuotesAreRead) {
  std::string wide = "\xff\xfe";
  for (const char c : durations({"864"})) wide.append(1, c).append(1, '\0');
  for (const std::string& text :
       {"\xef\xbb\xbf" + durations({"864"}), wide,
        std::string("ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n"
                    "0,k,Duration,ns,864\n"),
        std::string(",ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n"
                    "0,0,\"k<1, 2>\",Duration,ns,864\n")}) {
    EXPECT_EQ(cell(import_file("ncu", write("t.csv", text), {}), 0, "duration_ns"), "864") << text;
  }
}

TEST_F(Ncu, LinesMayEndBeforeTheColumnsOfRulesAndCountersMayBeMissing) {
  const ImportedTable table = import_file(
      "ncu",
      write("t.csv",
            "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\","
            "\"Rule Type\"\n"
            "\"0\",\"k\",\"Duration\",\"ns\",\"406240\",\n"
            "\"0\",\"k\",\"dram__bytes_read.sum\",\"\",\"n/a\"\n"),
      {});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "duration_ns"), "406240");
  EXPECT_EQ(cell(table, 0, "dram_read_bytes"), "");
}

TEST_F(Ncu, UnknownUnitsAreNamedWithTheirPlaces) {
  EXPECT_THAT(message_of([this] {
                import_file("ncu",
                            write("t.csv",
                                  "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\","
                                  "\"Metric Value\"\n"
                                  "\"0\",\"k\",\"Duration\",\"byte\",\"5\"\n"),
                            {});
              }),
              HasSubstr("t.csv:2:20: error: 'byte' is not a known unit of Duration"));
  EXPECT_THAT(message_of([this] {
                import_file("ncu",
                            write("t.csv",
                                  "\"ID\",\"Kernel Name\",\"dram__bytes_read.sum\"\n"
                                  "\"\",\"\",\"sector\"\n\"0\",\"k\",\"5\"\n"),
                            {});
              }),
              HasSubstr("t.csv:2:7: error: 'sector' is not a known unit of dram__bytes_read.sum"));
}

TEST_F(Ncu, OtherFilesAreRefused) {
  EXPECT_THAT(message_of([this] { import_file("ncu", write("t.csv", "==PROF== nothing\n"), {}); }),
              HasSubstr("t.csv: has no line with the columns \"ID\" and \"Kernel Name\""));
  EXPECT_THAT(message_of([this] {
                import_file("ncu", write("t.csv", "\"ID\",\"Kernel Name\",\"Metric Name\"\n"), {});
              }),
              HasSubstr("t.csv:1:1: error: there is no column 'Metric Unit'"));
  EXPECT_THAT(message_of([this] {
                import_file(
                    "ncu", write("t.csv", "\"ID\",\"Kernel Name\",\"x\"\n\"0\",\"k\",\"5\"\n"), {});
              }),
              HasSubstr("t.csv:2:1: error: the second line of the page 'raw' has the units"));
  EXPECT_THAT(message_of([this] {
                import_file("ncu",
                            write("t.csv", "\"ID\",\"Kernel Name\",\"x\"\n\"\",\"\",\"ns\"\n"), {});
              }),
              HasSubstr("t.csv: no launch has a metric that is read; collect them by `ncu "));
}

}  // namespace
}  // namespace orrery::ncu_test
