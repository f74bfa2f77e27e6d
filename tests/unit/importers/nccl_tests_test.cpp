// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"
#include "validation/importers/operator_table.h"

namespace orrery::nccl_tests_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using NcclTests = Scratch;

constexpr const char* kHead =
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 8\n"
    "#  Rank  0 Group  0 Pid 1 on a device  0 [0x07] NVIDIA H200\n"
    "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";

TEST_F(NcclTests, EveryTimeBecomesARowInTheColumnsOfCollectiveTables) {
  const ImportedTable table = import_file("nccl-tests", sample("all_reduce.log"), {});
  // Three sizes of two times each, less two of 0 bytes and one with wrong values.
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(cell(table, 0, "system"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(cell(table, 0, "collective"), "all_reduce");
  EXPECT_EQ(cell(table, 0, "precision"), "fp32");
  EXPECT_EQ(cell(table, 0, "ranks"), "2");
  EXPECT_EQ(cell(table, 0, "bytes"), "1024");
  EXPECT_EQ(cell(table, 0, "latency_us"), "8");
  EXPECT_EQ(cell(table, 0, "source"), "nccl-tests__nccl_2.27.3");
  EXPECT_EQ(cell(table, 0, "nodes"), "1");
  EXPECT_EQ(cell(table, 0, "placement"), "out_of_place");
  EXPECT_EQ(cell(table, 0, "bus_bytes_per_s"), "130000000");  // 0.13 GB/s
  EXPECT_EQ(cell(table, 1, "placement"), "in_place");
  EXPECT_EQ(cell(table, 1, "latency_us"), "8.25");
  EXPECT_EQ(cell(table, 2, "bytes"), "4096");
  EXPECT_EQ(cell(table, 2, "placement"), "in_place");
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("all_reduce.log: left out 2 times of 0 bytes"),
                          HasSubstr("all_reduce.log: left out 1 time with wrong values")));
}

TEST_F(NcclTests, OldColumnsTaggedLinesAndSeveralNodesAreUnderstood) {
  const ImportedTable table =
      import_file("nccl-tests", sample("all_gather_old.log"), {"a100_sxm", "all_gather"});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "system"), "a100_sxm");
  EXPECT_EQ(cell(table, 0, "collective"), "all_gather");
  EXPECT_EQ(cell(table, 0, "precision"), "fp16");
  EXPECT_EQ(cell(table, 0, "ranks"), "2");
  EXPECT_EQ(cell(table, 0, "nodes"), "2");
  EXPECT_EQ(cell(table, 0, "latency_us"), "52.43");
  EXPECT_EQ(cell(table, 0, "bus_bytes_per_s"), "10000000000");
  EXPECT_EQ(cell(table, 0, "source"), "nccl-tests__nccl_2.18.3");
  EXPECT_EQ(cell(table, 1, "latency_us"), "50");
}

TEST_F(NcclTests, TheCsvIsACollectiveTable) {
  const ImportedTable table = import_file("nccl-tests", sample("all_reduce.log"), {"h100_sxm", ""});
  std::ostringstream csv;
  write_csv(table, csv);
  const CollectiveTable read = read_collective_table(write("t.csv", csv.str()));
  ASSERT_EQ(read.rows.size(), 3U);
  EXPECT_EQ(read.rows[2].system, "h100_sxm");
  EXPECT_EQ(read.rows[2].bytes, 4096);
  EXPECT_EQ(read.rows[2].latency_us, 10.5);
}

TEST_F(NcclTests, RunsOfOneFileHaveTheirOwnProgramsAndRanks) {
  const std::string file =
      write("t.log", std::string(kHead) +
                         "  8 2 half sum -1 5 0 0 0 6 0 0 0\n"
                         "# Out of bounds values : 0 OK\n"
                         "# Collective test concluded: all_reduce_perf\n"
                         "$ srun ./alltoall_perf -g 2\n"
                         "# nThread 1 nGpus 2\n"
                         "0: #  Rank  0 Group  0 Pid 1 on a device  0 [0x07] NVIDIA H200\n"
                         "1: #  Rank  1 Group  0 Pid 1 on a device  1 [0x08] NVIDIA H200\n"
                         "# size count type redop root time algbw busbw #wrong\n"
                         "0:  8 2 fp8_e4m3 none -1 7 0 0 N/A\n");
  const ImportedTable table = import_file("nccl-tests", file, {});
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(cell(table, 0, "ranks"), "1");
  EXPECT_EQ(cell(table, 0, "precision"), "fp16");
  EXPECT_EQ(cell(table, 2, "collective"), "alltoall");
  EXPECT_EQ(cell(table, 2, "ranks"), "2");
  EXPECT_EQ(cell(table, 2, "precision"), "fp8");
  EXPECT_EQ(cell(table, 2, "latency_us"), "7");
}

TEST_F(NcclTests, WhatTheTextDoesNotTellMustBeSaid) {
  const std::string message =
      message_of([] { import_file("nccl-tests", sample("all_gather_old.log"), {}); });
  // "[1,0]<stdout>:" has 14 characters, "#" and 7 blanks follow.
  EXPECT_THAT(message, HasSubstr("all_gather_old.log:8:23: error: no line before this table names "
                                 "the program; say --collective NAME\n"));
  EXPECT_THAT(message_of([] {
                import_file("nccl-tests", sample("all_gather_old.log"), {"", "allgather"});
              }),
              HasSubstr("nccl-tests has no collective 'allgather'; did you mean 'all_gather'?"));
}

TEST_F(NcclTests, ProcessesThatRanApartAreNoCollective) {
  EXPECT_THAT(message_of([this] {
                import_file("nccl-tests",
                            write("t.log",
                                  "# nThread 1\n# Rank 0 Pid 1 on a device 0 [0x07] GPU\n"
                                  "# Rank 0 Pid 2 on a device 1 [0x08] GPU\n"),
                            {});
              }),
              HasSubstr("t.log:3:8: error: rank 0 is there twice: processes that ran apart"));
}

TEST_F(NcclTests, WrongRowsAreNamedWithTheirPlaces) {
  const std::string message = message_of([this] {
    import_file("nccl-tests",
                write("t.log", std::string(kHead) + "8 2 half sum -1 0.00 0 0 0 6 0 0 0\n"
                                                    "8 2 half sum -1 5 0 x 0 6 0 0 0\n"
                                                    "8 2 half sum -1 5 0 -1 0 6 0 0 0\n"
                                                    "8 2 half sum -1 5 0 0 bad 6 0 0 0\n"),
                {});
  });
  EXPECT_THAT(message, HasSubstr("t.log:5:17: error: a time is a finite number above 0\n"
                                 "    5 | 8 2 half sum -1 0.00 0 0 0 6 0 0 0\n"
                                 "      |                 ^~~~\n"));
  EXPECT_THAT(message, HasSubstr("t.log:6:21: error: 'x' is no number"));
  EXPECT_THAT(message, HasSubstr("t.log:7:21: error: a bandwidth is a finite number from 0 on"));
  EXPECT_THAT(message, HasSubstr("t.log:8:23: error: 'bad' is no number"));
}

TEST_F(NcclTests, TablesWithoutRanksOrOfCpuTimesAreRefused) {
  EXPECT_THAT(message_of([this] {
                import_file(
                    "nccl-tests",
                    write("t.log", "# size count type redop root time algbw busbw #wrong\n"),
                    {"", "all_reduce"});
              }),
              HasSubstr("t.log:1:3: error: there is no line '# Rank ...' before this table"));
  EXPECT_THAT(message_of([this] {
                import_file("nccl-tests",
                            write("t.log",
                                  "# Rank 0 on a device 0 GPU\n"
                                  "# size count type redop root cputime algbw busbw #wrong\n"),
                            {"", "all_reduce"});
              }),
              HasSubstr("t.log:2:3: error: a table without the columns type, time, busbw"));
  EXPECT_THAT(message_of([this] { import_file("nccl-tests", write("t.log", "hello\n"), {}); }),
              HasSubstr("t.log: holds no table of nccl-tests"));
}

std::string rank_line(int rank, int group = 0, const std::string& host = "a") {
  return "#  Rank " + std::to_string(rank) + " Group " + std::to_string(group) + " Pid 1 on " +
         host + " device 0 [0x07] NVIDIA H200\n";
}

constexpr const char* kColumns =
    "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
/// An all-reduce on four ranks: 1 MiB in 20 and 25 us.
constexpr const char* kRow =
    "1048576 262144 float sum -1 20.00 52.43 78.64 0 25.00 41.94 62.91 0\n";

std::string four_ranks() { return rank_line(0) + rank_line(1) + rank_line(2) + rank_line(3); }

TEST_F(NcclTests, AListOfRanksThatIsCutIsRefusedOrSaidByTheUser) {
  const std::string log = rank_line(3) + kColumns + kRow;
  EXPECT_THAT(
      message_of([&] {
        import_file("nccl-tests", write("t.log", log), {"", "all_reduce"});
      }),
      HasSubstr("t.log:2:4: error: the list of ranks before this table is cut (ranks 0 to 2 "
                "are missing); say --ranks N"));
  const ImportedTable table = import_file("nccl-tests", write("t.log", log), {"", "all_reduce", 4});
  EXPECT_EQ(cell(table, 0, "ranks"), "4");
  EXPECT_EQ(cell(table, 0, "nodes"), "");  // some ranks are not listed
  EXPECT_EQ(cell(table, 0, "system"), "NVIDIA H200");
  EXPECT_THAT(message_of([&] {
                import_file("nccl-tests", write("t.log", log), {"", "all_reduce", 3});
              }),
              HasSubstr("the list has rank 3, and --ranks 3 means 0 to 2"));
  EXPECT_THAT(message_of([&] {
                import_file("nccl-tests",
                            write("t.log", rank_line(0) + rank_line(2) + kColumns + kRow),
                            {"", "all_reduce"});
              }),
              HasSubstr("(rank 1 is missing)"));
}

TEST_F(NcclTests, BandwidthsTellAListThatIsCutAtItsEnd) {
  const auto message = [this](const std::string& ranks, const std::string& collective) {
    return message_of([&] {
      import_file("nccl-tests", write("t.log", ranks + kColumns + kRow), {"", collective});
    });
  };
  EXPECT_EQ(message(four_ranks(), "all_reduce"), "");
  EXPECT_THAT(message(rank_line(0) + rank_line(1), "all_reduce"),
              HasSubstr("a bus bandwidth of 78.64 where the algorithm has 52.43 is not that of "
                        "all_reduce on 2 ranks; is the list of ranks cut? Then say --ranks N"));
  EXPECT_THAT(message(four_ranks(), "alltoall"), HasSubstr("is not that of alltoall on 4 ranks"));
  EXPECT_EQ(message(four_ranks(), "broadcast"), "");  // no factor is known
}

TEST_F(NcclTests, ThatTheUserKnowsMoreRanksThanTheListIsNoted) {
  const ImportedTable table =
      import_file("nccl-tests", write("t.log", rank_line(0) + rank_line(1) + kColumns + kRow),
                  {"", "all_reduce", 4});
  EXPECT_EQ(cell(table, 0, "ranks"), "4");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("1 table has a list of ranks without gaps that is "
                                                 "shorter than --ranks says")));
}

TEST_F(NcclTests, GroupsAreCommunicatorsThatRunAtTheSameTime) {
  // NCCL_TESTS_SPLIT: ranks are numbered over all of them.
  const std::string log = rank_line(0, 0, "a") + rank_line(1, 1, "a") + rank_line(2, 0, "b") +
                          rank_line(3, 1, "b") + kColumns +
                          "1048576 262144 float sum -1 20.00 52.43 52.43 0 25.00 41.94 41.94 0\n";
  const ImportedTable table = import_file("nccl-tests", write("t.log", log), {"", "all_reduce"});
  EXPECT_EQ(cell(table, 0, "ranks"), "2");
  EXPECT_EQ(cell(table, 0, "groups"), "2");
  EXPECT_EQ(cell(table, 0, "nodes"), "2");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("up to 2 groups ran at the same time")));
  EXPECT_THAT(message_of([&] {
                import_file("nccl-tests",
                            write("t.log", rank_line(0, 0) + rank_line(1, 0) + rank_line(2, 1) +
                                               kColumns + kRow),
                            {"", "all_reduce"});
              }),
              HasSubstr("the groups have different numbers of ranks"));
}

TEST_F(NcclTests, RowsThatALogRunsIntoAreRead) {
  const std::string head = four_ranks() + kColumns;
  const auto read = [&](const std::string& rows) {
    return import_file("nccl-tests", write("t.log", head + rows), {"", "all_reduce"});
  };
  const std::string row = std::string(kRow).substr(0, std::string(kRow).size() - 1);
  for (const std::string& text :
       {"a:1:1 [0] NCCL INFO Connected all trees    " + row + "\n",
        row + " a:1:1 [0] NCCL INFO Connected all trees\n",
        row + "a:1:1 [0] NCCL INFO Connected all trees\n",
        "\x1b[36m" + row.substr(0, 20) + "\x1b[0m" + row.substr(20) + "\n",
        "2025-01-01 10:00:00,123 - INFO - " + row + "\n",
        std::string(
            "1048576 262144 float sum -1a:1:1 [0] NCCL INFO one\nb:1:1 [0] NCCL INFO 2 of 8\n"
            "  20.00 52.43 78.64 0a:1:1 [0] NCCL INFO 1 2 3\n  25.00 41.94 62.91 0\n")}) {
    const ImportedTable table = read(text);
    ASSERT_EQ(table.rows.size(), 2U) << text;
    EXPECT_EQ(cell(table, 0, "bytes"), "1048576");
    EXPECT_EQ(cell(table, 0, "latency_us"), "20");
    EXPECT_EQ(cell(table, 1, "latency_us"), "25");
    EXPECT_TRUE(table.notes.empty());
  }
}

TEST_F(NcclTests, RowsThatAreCutAreCounted) {
  const std::string log = four_ranks() + kColumns + "8 2 float sum -1 a:1:1 [0] NCCL INFO one\n" +
                          kRow + "2097152 524288 float sum -1 30";
  const ImportedTable table = import_file("nccl-tests", write("t.log", log), {"", "all_reduce"});
  EXPECT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("left out 2 rows that other lines of the log cut")));
}

TEST_F(NcclTests, UnknownTypesKeepTheirNames) {
  const ImportedTable table = import_file(
      "nccl-tests",
      write("t.log", four_ranks() + kColumns +
                         "1048576 262144 nvfp4 sum -1 20.00 52.43 78.64 0 25.00 41.94 62.91 0\n"),
      {"", "all_reduce"});
  EXPECT_EQ(cell(table, 0, "precision"), "nvfp4");
}

TEST_F(NcclTests, OperationsAndTypesTellRowsApart) {
  std::string log = four_ranks() + kColumns + kRow;
  std::string other = kRow;
  log += other.replace(other.find("sum"), 3, "max");
  const ImportedTable table = import_file("nccl-tests", write("t.log", log), {"", "all_reduce"});
  EXPECT_EQ(cell(table, 0, "redop"), "sum");
  EXPECT_EQ(cell(table, 2, "redop"), "max");
  EXPECT_EQ(cell(table, 2, "root"), "-1");
  EXPECT_EQ(cell(table, 2, "type"), "float");
  EXPECT_TRUE(table.notes.empty());
  const ImportedTable twice =
      import_file("nccl-tests", write("t.log", log + kRow), {"", "all_reduce"});
  EXPECT_THAT(twice.notes, ElementsAre(HasSubstr("2 rows are as an earlier one but for the time")));
}

TEST_F(NcclTests, MarksOfLaunchersAreTakenOff) {
  const auto marked = [](const std::string& mark) {
    std::string text, line;
    std::istringstream lines(four_ranks() + kColumns + kRow);
    while (std::getline(lines, line)) text.append(mark).append(line).append("\n");
    return text;
  };
  for (const char* mark : {"0: ", "  0: ", "[0] ", "[1,0]<stdout>:", "[prterun-a-1@1,0]<stdout>: ",
                           "node-1: ", "10.0.0.1: ", "[pod/nccl-launcher-x/main] ",
                           "(Worker pid=12, ip=10.0.0.1) ", "\x1b[36m(Worker pid=12)\x1b[0m ",
                           "2025-05-05T12:00:00.123Z ", "launcher-x launcher ", "12:", "> "}) {
    const ImportedTable table =
        import_file("nccl-tests", write("t.log", marked(mark)), {"", "all_reduce"});
    ASSERT_EQ(table.rows.size(), 2U) << mark;
    EXPECT_EQ(cell(table, 0, "ranks"), "4");
    EXPECT_EQ(cell(table, 0, "latency_us"), "20");
  }
}

TEST_F(NcclTests, HostsThatRunApartAreRunsOfTheirOwn) {
  std::string text, line;
  std::istringstream lines(four_ranks() + kColumns + kRow);
  while (std::getline(lines, line)) {
    text.append("n1: ").append(line).append("\nn2: ").append(line).append("\n");
  }
  const ImportedTable table = import_file("nccl-tests", write("t.log", text), {"", "all_reduce"});
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(cell(table, 0, "ranks"), "4");
  EXPECT_EQ(cell(table, 3, "ranks"), "4");
}

TEST_F(NcclTests, Utf16IsRead) {
  std::string little = "\xff\xfe", big = "\xfe\xff";
  for (const char c : four_ranks() + kColumns + kRow) {
    little.append(1, c).append(1, '\0');
    big.append(1, '\0').append(1, c);
  }
  for (const std::string& text : {little, big}) {
    EXPECT_EQ(import_file("nccl-tests", write("t.log", text), {"", "all_reduce"}).rows.size(), 2U);
  }
}

TEST_F(NcclTests, TablesWithoutRowsAreRefusedOrCounted) {
  const std::string empty = four_ranks() + kColumns + "# Out of bounds values : 0 OK\n";
  EXPECT_THAT(message_of([&] {
                import_file("nccl-tests", write("t.log", empty), {"", "all_reduce"});
              }),
              HasSubstr("t.log: its tables have no rows; did the program fail?"));
  const ImportedTable table = import_file(
      "nccl-tests", write("t.log", empty + "# nThread 1\n" + four_ranks() + kColumns + kRow),
      {"", "all_reduce"});
  EXPECT_EQ(table.rows.size(), 2U);
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("left out 1 table without rows")));
}

TEST_F(NcclTests, DeviationsOfOldVersionsAreNoCounts) {
  // DeltaMaxValue allows 1e-5 of float and 1e-2 of half; an asterisk marks what exceeds it.
  const std::string head =
      four_ranks() + "#  size count type redop time algbw busbw error time algbw busbw error\n";
  const ImportedTable table = import_file(
      "nccl-tests",
      write("t.log",
            head + "1048576 262144 float sum 20.00 52.43 78.64 4e-07 25.00 41.94 62.91 1e-03\n"
                   "1048576 524288 half sum 20.00 52.43 78.64 1e-03 25.00 41.94 62.91 2e-03*\n"),
      {"", "all_reduce"});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 1, "precision"), "fp16");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("left out 2 times with wrong values")));
}

TEST_F(NcclTests, RcclIsNamed) {
  const ImportedTable table =
      import_file("nccl-tests",
                  write("t.log",
                        "+ ./rccl-tests/build/all_reduce_perf -b 8\n"
                        "# nThread 1 nGpus 1\nrccl-tests: Version develop:448c4c7\n"
                        "RCCL version : 2.22.3-develop:abc\n"
                        "#   Rank  0 Pid 7 on a device  0 [0000:0c:00.0] AMD Instinct MI300X\n" +
                            std::string(kColumns) +
                            "8 2 fp8_e4m3 sum -1 20.00 0.00 0.00 0 25.00 0.00 0.00 0\n"),
                  {});
  EXPECT_EQ(cell(table, 0, "system"), "AMD Instinct MI300X");
  EXPECT_EQ(cell(table, 0, "collective"), "all_reduce");
  EXPECT_EQ(cell(table, 0, "source"), "rccl-tests__rccl_2.22.3");
}

TEST_F(NcclTests, HcclTestIsRead) {
  const std::string log =
      "$ mpirun -n 8 ./bin/all_reduce_test -p 8 -b 8K -e 64M -f 2 -d bfp16 -o sum\n"
      "the minbytes is 8192, maxbytes is 67108864, iters is 20, warmup_iters is 5\n"
      "data_size(Bytes):  | aveg_time(us):  | alg_bandwidth(GB/s):  | check_result:\n"
      "8192               | 43.50           | 0.18832               | success\n"
      "16384              | 45.50           | 0.36009               | failed\n";
  const ImportedTable table = import_file("nccl-tests", write("t.log", log), {"910B", ""});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "system"), "910B");
  EXPECT_EQ(cell(table, 0, "collective"), "all_reduce");
  EXPECT_EQ(cell(table, 0, "precision"), "bf16");
  EXPECT_EQ(cell(table, 0, "ranks"), "8");
  EXPECT_EQ(cell(table, 0, "bytes"), "8192");
  EXPECT_EQ(cell(table, 0, "latency_us"), "43.5");
  EXPECT_EQ(cell(table, 0, "redop"), "sum");
  EXPECT_EQ(cell(table, 0, "source"), "hccl_test");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("left out 1 times with wrong values")));
  EXPECT_THAT(message_of([&] {
                import_file("nccl-tests", write("t.log", log.substr(log.find("data_size"))), {});
              }),
              HasSubstr("t.log:1:1: error: no line before this table tells the number of ranks"));
  EXPECT_THAT(message_of([&] {
                std::string damaged = log;
                damaged.insert(damaged.find("data_size"), "x");
                import_file("nccl-tests", write("t.log", damaged), {});
              }),
              HasSubstr("a table of hccl_test without a size, a time in us"));
}

}  // namespace
}  // namespace orrery::nccl_tests_test
