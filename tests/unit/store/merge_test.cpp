// SPDX-License-Identifier: Apache-2.0
#include "sim/store/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sim/store/result_store.h"
#include "tests/unit/results/example.h"

namespace orrery::merge_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunRecord record_of(const std::string& identity, double time = 2) {
  RunRecord record = example_record();
  record.identity = identity;
  record.metrics.front().value = time;
  return record;
}

RunRecord failure_of(const std::string& identity) {
  RunRecord record = record_of(identity);
  record.status = RunStatus::kFailed;
  record.reason = "killed";
  record.metrics.clear();
  record.labels.clear();
  record.classes.clear();
  return record;
}

RunTimes times_of(const std::string& host, int exit_code = 0) {
  RunTimes times = example_times();
  times.host = host;
  times.exit_code = exit_code;
  return times;
}

MergeReport merge(ResultStore& into, const std::filesystem::path& shard) {
  MergeReport report;
  merge(into, shard, report, [](const std::function<void()>& work) { work(); });
  return report;
}

std::vector<std::string> identities(const ResultStore& store) {
  std::vector<std::string> all;
  store.for_each([&](const RunRecord& record) { all.push_back(record.identity); });
  return all;
}

class Merge : public ::testing::Test {
 protected:
  std::filesystem::path shard(const std::string& name, const std::vector<std::string>& points) {
    const auto path = folder_ / name;
    ResultStore store = ResultStore::open(path);
    for (const std::string& identity : points) store.save(record_of(identity), times_of(name));
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(Merge, TheOrderAndRepetitionOfShardsChangeNothing) {
  const auto first = shard("a.db", {"p1", "p2", "p3"}), second = shard("b.db", {"p2", "p4"});
  ResultStore one = ResultStore::open(folder_ / "one.db");
  ResultStore other = ResultStore::open(folder_ / "other.db");
  EXPECT_EQ(merge(one, first).added, 3U);
  EXPECT_EQ(merge(one, second).added, 1U);
  EXPECT_EQ(merge(other, second).added, 2U);
  EXPECT_EQ(merge(other, first).known, 1U);
  const MergeReport again = merge(other, first);
  EXPECT_EQ(again.added, 0U);
  EXPECT_EQ(again.known, 3U);
  EXPECT_THAT(identities(one), ElementsAre("p1", "p2", "p3", "p4"));
  EXPECT_EQ(identities(one), identities(other));
  EXPECT_EQ(one.times("p2").size(), 2U) << "the point ran in both, and each run is kept once";
  EXPECT_EQ(other.times("p2").size(), 2U);
}

TEST_F(Merge, AFailureGivesWayToAResultAndKeepsItsRuns) {
  const auto path = folder_ / "failed.db";
  ResultStore::open(path).save(failure_of("p1"), times_of("failed", 6));
  const auto good = shard("good.db", {"p1"});
  ResultStore store = ResultStore::open(folder_ / "s.db");
  EXPECT_EQ(merge(store, path).added, 1U);
  EXPECT_EQ(merge(store, good).replaced_failures, 1U);
  EXPECT_EQ(merge(store, path).known, 1U) << "a late failure does not undo a result";
  EXPECT_EQ(store.find("p1")->status, RunStatus::kOk);
  EXPECT_EQ(store.times("p1").size(), 2U);
}

TEST_F(Merge, TwoResultsOfOnePointAreADeterminismViolation) {
  const auto path = folder_ / "other.db";
  ResultStore::open(path).save(record_of("p1", 3), times_of("other"));
  ResultStore store = ResultStore::open(folder_ / "s.db");
  merge(store, shard("a.db", {"p1"}));
  EXPECT_THROW(merge(store, path), DeterminismError);
}

TEST_F(Merge, WhatIsDamagedCostsItselfOnly) {
  const auto path = shard("a.db", {"p1", "p2", "p3"});
  Database(path, Database::Mode::kWrite)
      .execute("UPDATE points SET reason = 'x' WHERE identity = 'p2'");
  ResultStore store = ResultStore::open(folder_ / "s.db");
  const MergeReport report = merge(store, path);
  EXPECT_EQ(report.added, 2U);
  EXPECT_THAT(report.damaged, ElementsAre(HasSubstr("p2")));
  std::ofstream(folder_ / "noise.db") << "this is no store";
  EXPECT_THAT(merge(store, folder_ / "noise.db").damaged, ElementsAre(HasSubstr("noise.db")));
  EXPECT_THAT(merge(store, folder_ / "none.db").damaged, ElementsAre(HasSubstr("none.db")));
  EXPECT_THAT(identities(store), ElementsAre("p1", "p3"));
}

TEST_F(Merge, MoreThanOneBatchArrivesWhole) {
  std::vector<std::string> names;
  for (int i = 0; i < 600; ++i) names.push_back("p" + std::to_string(1000 + i));
  const auto path = folder_ / "many.db";
  {
    ResultStore many = ResultStore::open(path);
    ResultStore::Batch batch = many.begin();
    for (const std::string& name : names) batch.save(record_of(name), times_of("many"));
    batch.commit();
  }
  ResultStore store = ResultStore::open(folder_ / "s.db");
  EXPECT_EQ(merge(store, path).added, names.size());
  EXPECT_EQ(identities(store), names);
}

}  // namespace
}  // namespace orrery::merge_test
