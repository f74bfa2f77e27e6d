// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Nsys = Scratch;

TEST_F(Nsys, ActivitiesAreGroupedByNameLongestTotalFirst) {
  write_nsys_sample(path("p.sqlite"));
  const ImportedTable table = import_file("nsys", path("p.sqlite"), {});
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(cell(table, 0, "activity"), "kernel");
  EXPECT_EQ(cell(table, 0, "name"), "void gemm<float, 4>(float *)");
  EXPECT_EQ(cell(table, 0, "calls"), "3");
  EXPECT_EQ(cell(table, 0, "total_ns"), "600");
  EXPECT_EQ(cell(table, 0, "median_ns"), "200");
  EXPECT_EQ(cell(table, 0, "min_ns"), "100");
  EXPECT_EQ(cell(table, 0, "max_ns"), "300");
  EXPECT_EQ(cell(table, 0, "bytes"), "");
  // Of the launch that starts first, which is not the first row.
  EXPECT_EQ(cell(table, 0, "grid"), "132x2x1");
  EXPECT_EQ(cell(table, 0, "block"), "256x1x1");
  EXPECT_EQ(cell(table, 1, "activity"), "memcpy");
  EXPECT_EQ(cell(table, 1, "name"), "host_to_device");
  EXPECT_EQ(cell(table, 1, "total_ns"), "120");
  EXPECT_EQ(cell(table, 1, "bytes"), "8192");
  EXPECT_EQ(cell(table, 1, "grid"), "");
  EXPECT_EQ(cell(table, 2, "name"), "softmax");
  EXPECT_EQ(cell(table, 2, "median_ns"), "15.5");  // between 10 and 21
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("left out 1 activities without a start or an end")));
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
  EXPECT_EQ(import_file("nsys", path("p.sqlite"), {}).rows.size(), 3U);
  EXPECT_EQ(std::filesystem::last_write_time(path("p.sqlite")), before);
}

}  // namespace
}  // namespace orrery
