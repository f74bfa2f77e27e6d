// SPDX-License-Identifier: Apache-2.0
#include "sim/store/point_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/store/garbage.h"
#include "sim/store/result_store.h"
#include "tests/unit/results/example.h"

namespace orrery::point_table_test {
namespace {

using testing::ElementsAre;

/// Three results that differ in two inputs, a failure, and one of another kind and an older engine.
void fill(ResultStore& store) {
  for (int i = 0; i < 3; ++i) {
    RunRecord record = example_record("p" + std::to_string(i), 0.1 * (i + 1));
    record.base = example_configuration("8");
    if (i > 0) {
      record.varied = {{{"bandwidth", "9 TB/s", 9e12, "B/s", "s.yaml:1:2"}, "9000000000000.0"}};
      if (i > 1)
        record.varied.push_back({{"flash", "false", std::nullopt, "", "s.yaml:1:1"}, "false"});
    }
    store.save(record, example_times());
  }
  RunRecord failed = example_record("p3");
  failed.status = RunStatus::kFailed;
  failed.metrics.clear();
  failed.labels.clear();
  store.save(failed, {"2026-01-01", 0, "here", 6});
  RunRecord other = example_record("p4", 0.4);
  other.experiment = "inference";
  other.base = example_configuration("16");
  other.labels = {{"bound", "latency"}};
  auto batch = store.begin();
  batch.save(StoredPoint{other, {example_times()}, "1"});
  batch.commit();
}

TEST(PointTable, HasColumnsOfMetricsLabelsQuantilesAndInputs) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  fill(store);
  const PointTable table(*store.database());
  ASSERT_EQ(table.size(), 5U);
  const auto columns =
      table.columns({"step_time_s", "bound", "step_time_s.p90", "bandwidth", "flash", "precision",
                     "status", "identity", "none", "breakdown.compute_s"});
  ASSERT_FALSE(columns[8].has_value());
  EXPECT_THAT(columns[0]->numbers, ElementsAre(0.1, 0.2, 0.1 * 3, testing::IsNan(), 0.4));
  EXPECT_EQ(columns[1]->word(0), "memory");
  EXPECT_FALSE(columns[1]->has(3));
  EXPECT_EQ(columns[1]->word(4), "latency");
  EXPECT_EQ(columns[2]->numbers[1], 0.2 * 1.1);
  EXPECT_FALSE(columns[2]->has(3));
  EXPECT_THAT(columns[3]->numbers, ElementsAre(8e12, 9e12, 9e12, 8e12, 8e12));
  EXPECT_EQ(columns[3]->unit, "B/s");
  EXPECT_EQ(columns[4]->kind, PointColumn::Kind::kFlag);
  EXPECT_THAT(columns[4]->numbers, ElementsAre(1, 1, 0, 1, 1));
  EXPECT_EQ(columns[5]->word(2), "bf16");
  EXPECT_EQ(columns[6]->word(3), "failed");
  EXPECT_EQ(columns[7]->word(2), "p2");
  EXPECT_TRUE(columns[9]->has(0));
  EXPECT_FALSE(columns[9]->has(3));
}

TEST(PointTable, KnowsWhatTellsPointsApart) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  fill(store);
  const PointTable table(*store.database());
  EXPECT_THAT(table.axes(), ElementsAre("bandwidth", "flash", "parallel.tp"));
  EXPECT_THAT(table.labels(), ElementsAre("bound"));
  std::size_t ok = 0;
  for (std::size_t i = 0; i < table.groups().size(); ++i)
    if (table.groups()[i].status == "ok") ok += table.counts()[i];
  EXPECT_EQ(ok, 4U);
}

TEST(Garbage, IsDroppedWithAllThatBelongsToIt) {
  const TemporaryFolder folder;
  {
    ResultStore store = ResultStore::open(folder / "r.db");
    fill(store);
  }
  {
    const ResultStore store = ResultStore::open_read_only(folder / "r.db");
    const Garbage garbage = find_garbage(*store.database(), {true, true});
    EXPECT_EQ(garbage.failures, 1);
    EXPECT_EQ(garbage.older_results, 1);
    EXPECT_EQ(find_garbage(*store.database(), {false, true}).failures, 0);
    EXPECT_EQ(store.all().size(), 5U) << "only looked";
  }
  drop_garbage(folder / "r.db", {true, true});
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  EXPECT_EQ(store.all().size(), 3U);
  EXPECT_EQ(store.database()->integer("SELECT count(*) FROM metrics_inference"), 0);
  EXPECT_EQ(store.database()->integer("SELECT count(*) FROM attempts"), 3);
  store.verify();
}

}  // namespace
}  // namespace orrery::point_table_test
