// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"
#include "validation/importers/collective_table.h"

namespace orrery {
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
                                                    "8 2 half sum -1 5 0 0 0 6 0\n"
                                                    "8 2 half sum -1 5 0 x 0 6 0 0 bad\n"),
                {});
  });
  EXPECT_THAT(message, HasSubstr("t.log:5:17: error: a time is a finite number above 0\n"
                                 "    5 | 8 2 half sum -1 0.00 0 0 0 6 0 0 0\n"
                                 "      |                 ^~~~\n"));
  EXPECT_THAT(message, HasSubstr("t.log:6:1: error: 11 cells, but there are 13 columns"));
  EXPECT_THAT(message, HasSubstr("t.log:7:21: error: a bandwidth is a finite number from 0 on"));
  EXPECT_THAT(message, HasSubstr("t.log:7:31: error: #wrong is a number or N/A"));
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

}  // namespace
}  // namespace orrery
