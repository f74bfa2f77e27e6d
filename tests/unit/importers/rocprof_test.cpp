// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery::rocprof_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Rocprof = Scratch;

TEST_F(Rocprof, TracesOfVersion3HaveAgentsAndShapes) {
  const ImportedTable table = import_file("rocprof", sample("rocprofv3_kernel_trace.csv"), {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "activity"), "kernel");
  EXPECT_EQ(cell(table, 0, "name"), "gemm<float, 4>(float*)");
  EXPECT_EQ(cell(table, 0, "calls"), "2");
  EXPECT_EQ(cell(table, 0, "total_ns"), "5000");
  EXPECT_EQ(cell(table, 0, "median_ns"), "2500");
  EXPECT_EQ(cell(table, 0, "grid"), "16x2x1");  // 4096 x 2 work-items in groups of 256 x 1
  EXPECT_EQ(cell(table, 0, "block"), "256x1x1");
  EXPECT_EQ(cell(table, 0, "device"), "4");
  EXPECT_EQ(cell(table, 1, "device"), "5");
}

TEST_F(Rocprof, CopiesOfVersion3AreNamedByTheirDirection) {
  const ImportedTable table = import_file(
      "rocprof",
      write("t.csv",
            "\"Kind\",\"Direction\",\"Source_Agent_Id\",\"Destination_Agent_Id\","
            "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
            "\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",\"Agent 0\",\"Agent 4\",1,10,60\n"
            "\"MEMORY_COPY\",\"DEVICE_TO_HOST\",\"Agent 4\",\"Agent 0\",1,70,90\n"),
      {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "activity"), "memcpy");
  EXPECT_EQ(cell(table, 0, "name"), "host_to_device");
  EXPECT_EQ(cell(table, 0, "total_ns"), "50");
  EXPECT_EQ(cell(table, 1, "name"), "device_to_host");
}

TEST_F(Rocprof, ResultsOfVersion1AreRead) {
  const ImportedTable table = import_file("rocprof", sample("rocprof_results.csv"), {});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "name"), "copy(float*)");
  EXPECT_EQ(cell(table, 0, "total_ns"), "1500");
  EXPECT_EQ(cell(table, 0, "grid"), "4x1x1");
  EXPECT_EQ(cell(table, 0, "block"), "256x1x1");
  EXPECT_EQ(cell(table, 0, "device"), "2");
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("left out 1 activities without a start or an end")));
}

TEST_F(Rocprof, SumsAreReadAndCallsOfTheHostLeftOut) {
  const ImportedTable table = import_file(
      "rocprof",
      write("t.csv",
            "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\","
            "\"MaxNs\",\"StdDev\"\n"
            "\"gemm(float*) [clone .kd]\",3,900,300.0,90,200,400,1\n"
            "\"hipMemcpy\",3,900,300.0,90,200,400,1\n"
            "\"CopyHostToDevice\",1,50,50,10,50,50,0\n"),
      {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "name"), "gemm(float*)");
  EXPECT_EQ(cell(table, 0, "calls"), "3");
  EXPECT_EQ(cell(table, 0, "total_ns"), "900");
  EXPECT_EQ(cell(table, 0, "median_ns"), "");
  EXPECT_EQ(cell(table, 0, "max_ns"), "400");
  EXPECT_EQ(cell(table, 1, "name"), "host_to_device");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("left out 1 rows of calls of the host")));
}

TEST_F(Rocprof, ADispatchWithSeveralCountersCountsOnce) {
  const ImportedTable table = import_file(
      "rocprof",
      write("t.csv",
            "Dispatch_Id,Agent_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,"
            "End_Timestamp\n1,4,k,A,1,10,30\n1,4,k,B,1,10,30\n2,4,k,A,1,40,70\n"),
      {});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "calls"), "2");
  EXPECT_EQ(cell(table, 0, "total_ns"), "50");
}

TEST_F(Rocprof, DatabasesOfVersion3HaveTablesForEachProcess) {
  write_rocpd_sample(path("p.db"));
  const ImportedTable table = import_file("rocprof", path("p.db"), {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "name"), "gemm(float*)");
  EXPECT_EQ(cell(table, 0, "calls"), "2");
  EXPECT_EQ(cell(table, 0, "total_ns"), "300");
  EXPECT_EQ(cell(table, 0, "grid"), "16x1x1");
  EXPECT_EQ(cell(table, 0, "device"), "2");
  EXPECT_EQ(cell(table, 1, "activity"), "memcpy");
  EXPECT_EQ(cell(table, 1, "name"), "host_to_device");
  EXPECT_EQ(cell(table, 1, "bytes"), "4096");
}

TEST_F(Rocprof, DatabasesOfRocmProfileDataAreRead) {
  Database(path("p.db"), Database::Mode::kCreate)
      .execute(
          "CREATE TABLE rocpd_string (id INTEGER, string TEXT);"
          "INSERT INTO rocpd_string VALUES (1, 'gemm'), (2, 'KernelExecution'), (3, "
          "'CopyHostToDevice'), (4, '');"
          "CREATE TABLE rocpd_op (gpuId, start, end, description_id, opType_id);"
          "INSERT INTO rocpd_op VALUES (0, 10, 40, 1, 2), (1, 50, 60, 4, 3);");
  const ImportedTable table = import_file("rocprof", path("p.db"), {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "name"), "gemm");
  EXPECT_EQ(cell(table, 0, "device"), "0");
  EXPECT_EQ(cell(table, 1, "name"), "host_to_device");
}

TEST_F(Rocprof, OtherFilesAreRefused) {
  EXPECT_THAT(message_of([this] { import_file("rocprof", path("absent"), {}); }),
              HasSubstr("absent: cannot be read: there is no such file"));
  EXPECT_THAT(message_of([this] { import_file("rocprof", write("t.csv", "a,b\n1,2\n"), {}); }),
              HasSubstr("t.csv:1:1: error: a trace has the name of the kernel"));
  EXPECT_THAT(message_of([this] {
                import_file("rocprof",
                            write("t.csv", "Kernel_Name,Start_Timestamp,End_Timestamp\nk,1,x\n"),
                            {});
              }),
              HasSubstr("t.csv:2:5: error: 'End_Timestamp' is a whole number from 0 on, not 'x'"));
  write_nsys_sample(path("p.sqlite"));
  EXPECT_THAT(message_of([this] { import_file("rocprof", path("p.sqlite"), {}); }),
              HasSubstr("p.sqlite: has no table rocpd_kernel_dispatch or rocpd_op"));
}

}  // namespace
}  // namespace orrery::rocprof_test
