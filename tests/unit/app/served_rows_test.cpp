// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/served_rows.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/app/serving_row.h"

namespace orrery::served_rows_test {
namespace {

using test::row_of;

TEST(ServedRows, ProcessesPredictWhatOneDoesInTheOrderOfTheRows) {
  const std::string small = "Qwen/Qwen2.5-3B", large = "meta-llama/Llama-3.1-8B";
  const std::vector<ServingRow> rows = {row_of(small, 1), row_of(large, 1), row_of("a/b", 1),
                                        row_of(small, 2), row_of(large, 2)};
  std::set<std::string> told;
  const auto served = compare_served(
      rows, "",
      [&](std::size_t all, const std::string& id) {
        EXPECT_EQ(all, rows.size());
        told.insert(id);
      },
      2);
  ASSERT_EQ(served.size(), rows.size());
  EXPECT_EQ(told.size(), rows.size());
  ServingValidation validation;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ServingComparison alone = validation.compare(rows[i], Intervals::kServed);
    EXPECT_EQ(served[i].row.id, rows[i].id);
    EXPECT_EQ(served[i].reason, alone.reason);
    EXPECT_EQ(served[i].tpot_ms, alone.tpot_ms);
    EXPECT_EQ(served[i].ttft_ms, alone.ttft_ms);
    EXPECT_EQ(served[i].tpot_interval, alone.tpot_interval);
    EXPECT_EQ(served[i].ttft_interval, alone.ttft_interval);
  }
  EXPECT_NE(served[2].reason, "");  // no such model
}

TEST(ServedRows, TimesLieInTheirIntervals) {
  for (const ServingComparison& c : compare_served({row_of("Qwen/Qwen2.5-3B", 4)}, "")) {
    ASSERT_TRUE(c.tpot_interval && c.ttft_interval);
    EXPECT_LT(c.tpot_interval->first, c.tpot_ms);
    EXPECT_GT(c.tpot_interval->second, c.tpot_ms);
    EXPECT_LE(c.ttft_interval->first, c.ttft_ms);
    EXPECT_GE(c.ttft_interval->second, c.ttft_ms);
  }
}

}  // namespace
}  // namespace orrery::served_rows_test
