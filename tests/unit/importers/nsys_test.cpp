// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery::nsys_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Nsys = Scratch;

TEST_F(Nsys, ActivitiesAreGroupedByNameAndShapeLongestTotalFirst) {
  write_nsys_sample(path("p.sqlite"));
  const ImportedTable table = import_file("nsys", path("p.sqlite"), {});
  ASSERT_EQ(table.rows.size(), 5U);
  EXPECT_EQ(cell(table, 0, "activity"), "kernel");
  EXPECT_EQ(cell(table, 0, "name"), "void gemm<float, 4>(float *)");
  EXPECT_EQ(cell(table, 0, "calls"), "1");
  EXPECT_EQ(cell(table, 0, "total_ns"), "300");
  EXPECT_EQ(cell(table, 0, "bytes"), "");
  EXPECT_EQ(cell(table, 0, "grid"), "32x1x1");
  EXPECT_EQ(cell(table, 0, "block"), "128x1x1");
  EXPECT_EQ(cell(table, 0, "device"), "0");
  EXPECT_EQ(cell(table, 1, "grid"), "132x2x1");
  EXPECT_EQ(cell(table, 1, "block"), "256x1x1");
  EXPECT_EQ(cell(table, 2, "activity"), "memcpy");
  EXPECT_EQ(cell(table, 2, "name"), "host_to_device");
  EXPECT_EQ(cell(table, 2, "total_ns"), "120");
  EXPECT_EQ(cell(table, 2, "median_ns"), "60");
  EXPECT_EQ(cell(table, 2, "min_ns"), "50");
  EXPECT_EQ(cell(table, 2, "max_ns"), "70");
  EXPECT_EQ(cell(table, 2, "bytes"), "8192");
  EXPECT_EQ(cell(table, 2, "grid"), "");
  EXPECT_EQ(cell(table, 4, "name"), "softmax");
  EXPECT_EQ(cell(table, 4, "calls"), "2");
  EXPECT_EQ(cell(table, 4, "median_ns"), "15.5");  // between 10 and 21
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("left out 1 activities without a start or an end")));
}

TEST_F(Nsys, GraphsMemsetsAndDevicesAreRowsOfTheirOwn) {
  {
    Database database(path("p.sqlite"), Database::Mode::kCreate);
    database.execute(
        "CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, 'k');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, globalPid, demangledName);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 0, 16777216, 1), (5, 8, 1, 16777216, "
        "1);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, bytes);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1, 3, 0, 100), (4, 5, 0, 100);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, graphId);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (10, 60, 0, 3), (70, 140, 0, 3);");
  }
  const ImportedTable table = import_file("nsys", path("p.sqlite"), {});
  ASSERT_EQ(table.rows.size(), 4U);
  EXPECT_EQ(cell(table, 0, "activity"), "graph");
  EXPECT_EQ(cell(table, 0, "name"), "graph_3");
  EXPECT_EQ(cell(table, 0, "total_ns"), "120");
  EXPECT_EQ(cell(table, 1, "device"), "0");
  EXPECT_EQ(cell(table, 1, "total_ns"), "4");
  EXPECT_EQ(cell(table, 2, "activity"), "kernel");
  EXPECT_EQ(cell(table, 2, "device"), "1");
  EXPECT_EQ(cell(table, 3, "activity"), "memset");
  EXPECT_EQ(cell(table, 3, "bytes"), "200");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("2 launches of whole CUDA graphs")));
}

TEST_F(Nsys, DevicesOfSeveralProcessesAreThoseOfTheMachine) {
  {
    Database database(path("p.sqlite"), Database::Mode::kCreate);
    // Process 7 sees GPU 3 as its device 0, process 8 GPU 4.
    database.execute(
        "CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, 'k');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, globalPid, demangledName);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 0, 7 << 24, 1), (5, 8, 0, 8 << 24, "
        "1);"
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid);"
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 7), (4, 0, 8);");
  }
  const ImportedTable table = import_file("nsys", path("p.sqlite"), {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "device"), "3");
  EXPECT_EQ(cell(table, 1, "device"), "4");
}

TEST_F(Nsys, SumsOfNsysStatsAreRead) {
  const ImportedTable table = import_file(
      "nsys",
      write(
          "t.csv",
          "Processing [p.sqlite] with [/opt/nsys/cuda_gpu_kern_gb_sum.py]...\n\n"
          "Time (%),Total Time (us),Instances,Avg (us),Med (us),Min (us),Max (us),StdDev "
          "(us),GridXYZ,BlockXYZ,Name\n"
          "90.0,3.000,2,1.500,1.500,1.000,2.000,0.5,  132    2    1, 256    1    1,\"gemm<a, b>\"\n"
          "10.0,0.333,1,0.333,0.333,0.333,0.333,0,   1    1    1,  32    1    1,softmax\n\n"
          "Processing [p.sqlite] with [/opt/nsys/cuda_gpu_mem_time_sum.py]...\n\n"
          "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
          "(ns),Operation\n"
          "100.0,500,1,500,500,500,500,0,[CUDA memcpy Host-to-Device]\n\n"
          "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
          "(ns),Name\n"
          "100.0,500,1,500,500,500,500,0,cudaLaunchKernel\n"),
      {});
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(cell(table, 0, "name"), "gemm<a, b>");
  EXPECT_EQ(cell(table, 0, "total_ns"), "3000");
  EXPECT_EQ(cell(table, 0, "calls"), "2");
  EXPECT_EQ(cell(table, 0, "min_ns"), "1000");
  EXPECT_EQ(cell(table, 0, "grid"), "132x2x1");
  EXPECT_EQ(cell(table, 0, "block"), "256x1x1");
  EXPECT_EQ(cell(table, 1, "activity"), "memcpy");
  EXPECT_EQ(cell(table, 1, "name"), "host_to_device");
  EXPECT_EQ(cell(table, 2, "name"), "softmax");
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("left out 1 tables that do not have times of GPUs")));
}

TEST_F(Nsys, OfSeveralReportsOfTheSameActivitiesTheFinestCounts) {
  const ImportedTable table = import_file("nsys", sample("nsys_stats.csv"), {});
  ASSERT_EQ(table.rows.size(), 2U);  // those of the trace
  EXPECT_EQ(cell(table, 0, "name"), "softmax");
  EXPECT_EQ(cell(table, 1, "name"), "device_to_host");
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("left out 2 sums of activities that a finer table tells")));
}

TEST_F(Nsys, TracesOfNsysStatsAreGrouped) {
  const ImportedTable table = import_file(
      "nsys",
      write("t.csv",
            "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,Bytes "
            "(MB),Device,Ctx,Strm,Name\n"
            "10,100,1,4,1,1,32,1,1,16,,NVIDIA H100 (1),1,7,k\n"
            "20,300,2,4,1,1,32,1,1,16,,NVIDIA H100 (1),1,7,k\n"
            "30,50,3,,,,,,,,1.5,NVIDIA H100 (1),1,7,[CUDA memcpy DtoH]\n"),
      {});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(cell(table, 0, "calls"), "2");
  EXPECT_EQ(cell(table, 0, "median_ns"), "200");
  EXPECT_EQ(cell(table, 0, "grid"), "4x1x1");
  EXPECT_EQ(cell(table, 0, "device"), "1");
  EXPECT_EQ(cell(table, 1, "name"), "device_to_host");
  EXPECT_EQ(cell(table, 1, "bytes"), "1500000");
  EXPECT_THAT(message_of([this] {
                import_file("nsys",
                            write("t.csv", "Time (%),Total Time (ns),Instances,Name\n1,fast,1,k\n"),
                            {});
              }),
              HasSubstr("t.csv:2:3: error: a time is a finite number from 0 on"));
}

TEST_F(Nsys, CopiesAndShapesMayBeMissing) {
  {
    Database database(path("p.sqlite"), Database::Mode::kCreate);
    database.execute(
        "CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, 'k');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName "
        "INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 1);");
  }
  const ImportedTable table = import_file("nsys", path("p.sqlite"), {});
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(cell(table, 0, "total_ns"), "4");
  EXPECT_EQ(cell(table, 0, "grid"), "");
}

TEST_F(Nsys, WhatTheFileLacksIsNamed) {
  const auto message = [this](const char* sql) {
    std::filesystem::remove(path("p.sqlite"));
    Database(path("p.sqlite"), Database::Mode::kCreate).execute(sql);
    return message_of([this] { import_file("nsys", path("p.sqlite"), {}); });
  };
  EXPECT_THAT(message("CREATE TABLE StringIds (id INTEGER, value TEXT)"),
              HasSubstr("p.sqlite: has no table CUPTI_ACTIVITY_KIND_KERNEL; is it made by "));
  EXPECT_THAT(message("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, name INTEGER)"),
              HasSubstr("p.sqlite: its table CUPTI_ACTIVITY_KIND_KERNEL has no column end, "
                        "demangledName; this version of nsys is not known"));
  EXPECT_THAT(message("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName)"),
              HasSubstr("p.sqlite: has no table StringIds"));
  EXPECT_THAT(message("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, demangledName);"
                      "CREATE TABLE StringIds (id, value);"
                      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 3)"),
              HasSubstr("p.sqlite: StringIds has no name 3"));
}

TEST_F(Nsys, OtherFilesAreRefused) {
  EXPECT_THAT(message_of([this] { import_file("nsys", path("absent"), {}); }),
              HasSubstr("absent: cannot be read: there is no such file"));
  const std::string report = write("p.nsys-rep", std::string(4096, 'r'));
  EXPECT_THAT(
      message_of([&] { import_file("nsys", report, {}); }),
      HasSubstr("p.nsys-rep: file is not a database; a report (.nsys-rep) becomes one by "));
}

TEST_F(Nsys, TheFileIsNotWrittenTo) {
  write_nsys_sample(path("p.sqlite"));
  std::filesystem::permissions(path("p.sqlite"), std::filesystem::perms::owner_read);
  const auto before = std::filesystem::last_write_time(path("p.sqlite"));
  EXPECT_EQ(import_file("nsys", path("p.sqlite"), {}).rows.size(), 5U);
  EXPECT_EQ(std::filesystem::last_write_time(path("p.sqlite")), before);
}

}  // namespace
}  // namespace orrery::nsys_test
