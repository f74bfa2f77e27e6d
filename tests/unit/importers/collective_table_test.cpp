// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/operator_table.h"

#include <gmock/gmock.h>

#include "tests/unit/importers/samples.h"
#include "tests/unit/importers/scratch.h"

namespace orrery::collective_table_test {
namespace {

using testing::HasSubstr;

using CollectiveTables = Scratch;

TEST_F(CollectiveTables, AnNcclTableHasItsRows) {
  const CollectiveTable table = read_collective_table(sample("collective.csv"));
  EXPECT_EQ(table.kind, CollectiveTableKind::kNccl);
  EXPECT_EQ(table.header, "system,collective,precision,ranks,bytes,latency_us,source");
  ASSERT_EQ(table.rows.size(), 2U);
  const CollectiveRow& row = table.rows[1];
  EXPECT_EQ(row.line, 3U);
  EXPECT_EQ(row.system, "h100_sxm");
  EXPECT_EQ(row.collective, "alltoall");
  EXPECT_EQ(row.precision, "int8");
  EXPECT_EQ(row.ranks, 8);
  EXPECT_EQ(row.bytes, 2048);
  EXPECT_EQ(row.latency_us, 9.25);
  EXPECT_EQ(row.source, "nccl__nccl_2.27.3");
  EXPECT_EQ(row.text, "h100_sxm,alltoall,int8,8,2048,9.25,nccl__nccl_2.27.3");
}

TEST_F(CollectiveTables, WithoutTheColumnCollectiveTheRowsAreAllReduces) {
  const CollectiveTable table = read_collective_table(write_gzip(
      "t.csv.gz", "system,precision,ranks,bytes,latency_us,source\nx,bf16,2,1024,3,y\n"));
  EXPECT_STREQ(to_string(table.kind), "all_reduce_custom");
  EXPECT_EQ(table.rows.at(0).collective, "all_reduce");
  EXPECT_EQ(table.rows.at(0).bytes, 1024);
}

TEST_F(CollectiveTables, WrongCellsAndColumnsAreNamedWithTheirPlaces) {
  const std::string message = message_of([this] {
    read_collective_table(write("t.csv",
                                "system,collective,precision,ranks,bytes,latency_us,source\n"
                                "x,,bf16,two,1024,inf,y\n"));
  });
  EXPECT_THAT(message, HasSubstr("t.csv:2:3: error: 'collective' is empty"));
  EXPECT_THAT(message,
              HasSubstr("t.csv:2:9: error: 'ranks' is a whole number from 0 on, not 'two'"));
  EXPECT_THAT(message,
              HasSubstr("t.csv:2:18: error: 'latency_us' is a finite number above 0, not 'inf'"));
  EXPECT_THAT(
      message_of([this] {
        read_collective_table(write("t.csv", "system,precision,rank,bytes,latency_us,source\n"));
      }),
      HasSubstr("t.csv:1:1: error: there is no column 'ranks'; is it 'rank'?"));
}

/// The rows that are kept in the repository.
TEST(MeasuredCollectives, AreReadWhole) {
  const CollectiveTable table =
      read_collective_table(ORRERY_SOURCE_DIR "/validation/measured/collective_nccl.csv");
  EXPECT_EQ(table.rows.size(), 108U);
  EXPECT_EQ(table.rows.front().collective, "all_gather");
}

}  // namespace
}  // namespace orrery::collective_table_test
