// SPDX-License-Identifier: Apache-2.0
#include "sim/store/result_store.h"
#include "sim/results/metric_table.h"
#include "sim/store/point_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "sim/results/record_bytes.h"
#include "sim/store/schema.h"
#include "tests/unit/results/example.h"

namespace orrery::result_store_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string content(const std::filesystem::path& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

std::size_t files_in(const TemporaryFolder& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

template <class Call>
StoreFault fault_of(Call call) {
  try {
    call();
  } catch (const StoreError& error) {
    return error.fault();
  }
  ADD_FAILURE() << "no StoreError";
  return StoreFault::kOther;
}

TEST(ResultStore, GivesBackWhatWasSavedToTheBit) {
  const TemporaryFolder folder;
  const RunRecord record = example_record();
  {
    ResultStore store = ResultStore::open(folder / "r.db");
    EXPECT_EQ(store.save(record, example_times()), SaveOutcome::kAdded);
  }
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  ASSERT_TRUE(store.contains("id"));
  EXPECT_EQ(to_json(*store.find("id")).dump(), to_json(record).dump());
  EXPECT_EQ(store.times("id").at(0).started, example_times().started);
  EXPECT_FALSE(store.find("other").has_value());
  store.verify();
}

TEST(ResultStore, LeavesNoTraceBeforeTheFirstSave) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  EXPECT_FALSE(store.contains("id"));
  EXPECT_TRUE(store.all().empty());
  RunRecord bad = example_record();
  bad.metrics[0].value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(store.save(bad, example_times()), std::logic_error);
  EXPECT_EQ(files_in(folder), 0u);
}

TEST(ResultStore, IsOneFileOnceClosed) {
  const TemporaryFolder folder;
  { ResultStore::open(folder / "r.db").save(example_record(), example_times()); }
  EXPECT_EQ(files_in(folder), 1u);
  const std::string before = content(folder / "r.db");
  { EXPECT_EQ(ResultStore::open_read_only(folder / "r.db").all().size(), 1u); }
  EXPECT_EQ(files_in(folder), 1u);
  EXPECT_EQ(content(folder / "r.db"), before);
}

TEST(ResultStore, ReadOnlyNeedsAStore) {
  const TemporaryFolder folder;
  EXPECT_EQ(fault_of([&] { ResultStore::open_read_only(folder / "none.db"); }),
            StoreFault::kUnreachable);
  EXPECT_EQ(fault_of([&] { ResultStore::open(folder / "none" / "r.db"); }),
            StoreFault::kUnreachable);
  EXPECT_EQ(files_in(folder), 0u);
  { ResultStore::open(folder / "r.db").save(example_record(), example_times()); }
  ResultStore store = ResultStore::open_read_only(folder / "r.db");
  EXPECT_THROW(store.save(example_record("b"), example_times()), std::logic_error);
}

TEST(ResultStore, TheSameResultAgainAddsARunAndNoResult) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  store.save(example_record(), example_times());
  RunRecord again = example_record();
  again.name = "called otherwise";
  again.metrics.push_back({"wall_time_s", 3.25, "s"});
  EXPECT_EQ(store.save(again, {"2025-11-04T00:00:00.000Z", 3.25, "node2"}),
            SaveOutcome::kAlreadyThere);
  EXPECT_EQ(store.save(again, {"2025-11-04T00:00:00.000Z", 3.25, "node2"}),
            SaveOutcome::kAlreadyThere);  // the same run twice, as a repeated merge does
  EXPECT_EQ(store.all().size(), 1u);
  EXPECT_EQ(store.times("id").size(), 2u);
  EXPECT_EQ(store.find("id")->name, example_record().name);
}

TEST(ResultStore, AnotherResultForAPointIsADeterminismError) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  store.save(example_record("id", 0.1), example_times());
  try {
    store.save(example_record("id", 0.1 + 1e-17 * 2), example_times());
    FAIL() << "differs in the last bit";
  } catch (const DeterminismError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step_time_s 0.10000000000000001 and 0.1000000000000000"));
  }
  EXPECT_EQ(store.find("id")->find("step_time_s")->value, 0.1);
  EXPECT_EQ(store.times("id").size(), 1u);
  store.save(example_record("other"), example_times());  // the store stays usable
}

TEST(ResultStore, AFailureGivesWayToAResultAndReplacesNone) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  RunRecord failed = example_record();
  failed.status = RunStatus::kFailed;
  failed.reason = "time-out after 600 s";
  failed.metrics.clear();
  EXPECT_EQ(store.save(failed, example_times()), SaveOutcome::kAdded);
  EXPECT_EQ(store.status("id"), RunStatus::kFailed);
  EXPECT_EQ(store.save(example_record(), example_times()), SaveOutcome::kReplacedFailure);
  EXPECT_EQ(store.status("id"), RunStatus::kOk);
  EXPECT_EQ(store.save(failed, example_times()), SaveOutcome::kAlreadyThere);
  EXPECT_EQ(store.status("id"), RunStatus::kOk);
  store.verify();
}

TEST(ResultStore, ListsRecordsByIdentityWhateverTheOrderOfSaving) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  for (const char* identity : {"c", "a", "b"})
    store.save(example_record(identity), example_times());
  std::vector<std::string> identities;
  store.for_each([&](const RunRecord& record) { identities.push_back(record.identity); });
  EXPECT_THAT(identities, ElementsAre("a", "b", "c"));
}

TEST(ResultStore, DigestCoversResultsAndNothingElse) {
  const std::string digest = result_digest(example_record());
  RunRecord same = example_record();
  same.name = "x";
  same.base = nullptr;
  std::swap(same.metrics[0], same.metrics[1]);
  same.provenance = {{"analytic", 0.9}, {"measured", 0.1}};
  same.metrics.push_back({"wall_time_s", 1, "s"});
  EXPECT_EQ(result_digest(same), digest);
  const auto changes = std::vector<void (*)(RunRecord&)>{
      [](RunRecord& r) { r.metrics[0].value = std::nextafter(r.metrics[0].value, 1.0); },
      [](RunRecord& r) { r.metrics[0].unit = "ms"; },
      [](RunRecord& r) { r.metrics[0].interval.reset(); },
      [](RunRecord& r) { r.labels[0].value = "compute"; },
      [](RunRecord& r) { r.classes[1].count = 5; },
      [](RunRecord& r) { r.provenance["measured"] = 0.2; },
      [](RunRecord& r) { r.status = RunStatus::kInfeasible; },
      [](RunRecord& r) { r.reason = "why"; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    RunRecord changed = example_record();
    changes[i](changed);
    EXPECT_NE(result_digest(changed), digest) << "change " << i;
  }
}

TEST(ResultStore, MinusZeroIsZero) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  store.save(example_record("id", -0.0), example_times());
  EXPECT_EQ(store.find("id")->find("step_time_s")->value, 0.0);
}

TEST(ResultStore, RefusesOtherFilesAndLeavesThemAlone) {
  const TemporaryFolder folder;
  { Database(folder / "foreign.db", Database::Mode::kCreate).execute("CREATE TABLE t (a)"); }
  std::ofstream(folder / "notes.txt") << std::string(2000, 'x');
  for (const auto& [name, step] : {std::pair("newer.db", 1), std::pair("older.db", -1)}) {
    { ResultStore::open(folder / name).save(example_record(), example_times()); }
    Database other(folder / name, Database::Mode::kWrite);
    other.execute(("PRAGMA user_version = " + std::to_string(kStoreVersion + step)).c_str());
  }
  const std::vector<std::pair<std::string, StoreFault>> files = {
      {"foreign.db", StoreFault::kForeign},
      {"notes.txt", StoreFault::kForeign},
      {"newer.db", StoreFault::kVersion},
      {"older.db", StoreFault::kVersion}};
  for (const auto& file : files) {
    const auto path = folder / file.first;
    const std::string before = content(path);
    EXPECT_EQ(fault_of([&] { ResultStore::open(path); }), file.second) << path;
    EXPECT_EQ(fault_of([&] { ResultStore::open_read_only(path); }), file.second) << path;
    EXPECT_EQ(content(path), before) << path;
  }
}

TEST(ResultStore, RefusesAFileThatBecameForeignBeforeTheFirstSave) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  { Database(folder / "r.db", Database::Mode::kCreate).execute("CREATE TABLE t (a)"); }
  const std::string before = content(folder / "r.db");
  EXPECT_EQ(fault_of([&] { store.save(example_record(), example_times()); }), StoreFault::kForeign);
  EXPECT_EQ(content(folder / "r.db"), before);
}

TEST(ResultStore, NoticesAChangedNumber) {
  const TemporaryFolder folder;
  { ResultStore::open(folder / "r.db").save(example_record(), example_times()); }
  {
    Database database(folder / "r.db", Database::Mode::kWrite);
    database.execute("UPDATE metrics_training SET step_time_s = step_time_s * 2");
  }
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  EXPECT_EQ(fault_of([&] { store.find("id"); }), StoreFault::kCorrupt);
  EXPECT_EQ(fault_of([&] { store.verify(); }), StoreFault::kCorrupt);
}

TileRow example_tile(const std::string& key, double duration_us = 1.0 / 3) {
  return {key, "h200_sxm", "gemm", "bf16", "1 x 2 x 3 x 4", 1, 0.8, duration_us, 17};
}

TEST(ResultStore, KeepsTileResultsToTheBit) {
  const TemporaryFolder folder;
  {
    ResultStore::open(folder / "r.db")
        .save(example_record(), example_times(), {example_tile("b"), example_tile("a", 2)});
  }
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  const std::vector<TileRow> rows = store.tiles();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].key, "a");
  EXPECT_EQ(rows[1].duration_us, 1.0 / 3);
  EXPECT_EQ(rows[1].events, 17);
  ByteWriter bytes;
  add(bytes, rows);
  ByteReader reader(bytes.bytes());
  const std::vector<TileRow> back = read_tiles(reader);
  EXPECT_EQ(back[1].key, rows[1].key);
  EXPECT_EQ(back[1].duration_us, rows[1].duration_us);
  store.verify();
}

TEST(ResultStore, TheFirstTileResultOfAKeyStays) {
  const TemporaryFolder folder;
  ResultStore a = ResultStore::open(folder / "r.db");
  ResultStore b = ResultStore::open(folder / "r.db");
  a.save(example_record("a"), example_times(), {example_tile("k", 1)});
  b.save(example_record("b"), example_times(), {example_tile("k", 2), example_tile("l", 3)});
  const std::vector<TileRow> rows = b.tiles();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].duration_us, 1);
  EXPECT_EQ(rows[1].duration_us, 3);
}

TEST(ResultStore, NoticesAChangedTileResult) {
  const TemporaryFolder folder;
  {
    ResultStore::open(folder / "r.db").save(example_record(), example_times(), {example_tile("k")});
  }
  Database(folder / "r.db", Database::Mode::kWrite)
      .execute("UPDATE tiles SET duration_us = duration_us * 2");
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  EXPECT_EQ(fault_of([&] { store.tiles(); }), StoreFault::kCorrupt);
  EXPECT_EQ(fault_of([&] { store.verify(); }), StoreFault::kCorrupt);
}

TEST(ResultStore, ASearchBeginsOnceAndFromWhatWasWritten) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  EXPECT_FALSE(store.search("k").has_value());
  store.begin_search({"k", "s", 1, {12, 40, 7}});
  store.begin_search({"k", "s", 1, {1}});
  store.begin_search({"other", "s", 2, {}});
  EXPECT_THAT(store.search("k")->begun_from, ElementsAre(12, 40, 7));
  EXPECT_TRUE(store.search("other")->begun_from.empty());
  Database(folder / "r.db", Database::Mode::kWrite)
      .execute("UPDATE searches SET begun_from = '12 41 7' WHERE key = 'k'");
  EXPECT_EQ(fault_of([&] { static_cast<void>(store.search("k")); }), StoreFault::kCorrupt);
  EXPECT_EQ(fault_of([&] { store.verify(); }), StoreFault::kCorrupt);
}

TEST(ResultStore, RowsComeBackToTheBitAndCountInTheDigest) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  RunRecord record = example_record();
  const std::string without = result_digest(record);
  record.rows = {{"samples", {0.1, 0, 1, 2, 1.0 / 3, 0.2, 0, std::nan(""), 2, 0.5}}};
  EXPECT_NE(result_digest(record), without);
  store.save(record, example_times());
  const RunRecord read = *store.find(record.identity);
  ASSERT_EQ(read.rows.size(), 1U);
  EXPECT_EQ(read.rows[0].name, "samples");
  EXPECT_EQ(result_digest(read), result_digest(record));
  Database(folder / "r.db", Database::Mode::kWrite)
      .execute("UPDATE samples SET waiting = 9 WHERE position = 0");
  EXPECT_EQ(fault_of([&] { static_cast<void>(store.find(record.identity)); }),
            StoreFault::kCorrupt);
}

TEST(ResultStore, SavesManyPointsInOneBatchOrNone) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  {
    auto batch = store.begin();
    for (const char* id : {"a", "b"}) batch.save(example_record(id), example_times());
  }
  EXPECT_TRUE(store.all().empty());
  {
    auto batch = store.begin();
    for (const char* id : {"a", "b", "c"}) batch.save(example_record(id), example_times());
    batch.commit();
  }
  EXPECT_EQ(store.all().size(), 3U);
  store.verify();
}

TEST(ResultStore, PointsShareTheirConfigurationAndSayWhatDiffers) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  store.save(example_record("a"), example_times());
  RunRecord planned = example_record("b");  // as a sweep has it
  planned.base = example_configuration("8");
  planned.varied = {{{"flash", "false", std::nullopt, "", "s.yaml:1:1"}, "false"},
                    {{"bandwidth", "9 TB/s", 9e12, "B/s", "s.yaml:1:2"}, "9000000000000.0"}};
  RunRecord whole = example_record("c");  // as a run has it
  whole.base = example_configuration("16");
  const std::vector<RunRecord> records = {planned, whole};
  for (const RunRecord& record : records) store.save(record, example_times());
  for (const RunRecord& record : records)
    EXPECT_EQ(to_json(*store.find(record.identity)).dump(), to_json(record).dump());
  const ResultStore again = ResultStore::open_read_only(folder / "r.db");
  EXPECT_EQ(to_json(*again.find("b")).dump(), to_json(planned).dump());
  EXPECT_EQ(store.database()->integer("SELECT count(*) FROM configurations"), 1);
  EXPECT_EQ(store.database()->integer("SELECT count(*) FROM varied"), 3);
  EXPECT_EQ(store.database()->integer("SELECT value FROM v_parameters WHERE identity = 'c' AND "
                                      "path = 'parallel.tp'"),
            16);
}

TEST(ResultStore, APointTakesLessThanTwoKilobytesBesideItsMetrics) {
  const TemporaryFolder folder;
  constexpr int kPoints = 1000;
  const auto size = [&](const char* file, int points) {
    {
      ResultStore store = ResultStore::open(folder / file);
      auto batch = store.begin();
      for (int i = 0; i < points; ++i) {
        RunRecord record = example_record(std::string(60, 'x') + std::to_string(i + 1000), i);
        record.varied = {{{"parallel.tp", std::to_string(i), 1.0 * i, "", "a_sweep.yaml:12:34"},
                          std::to_string(i)}};
        batch.save(record, example_times());
      }
      batch.commit();
    }
    return static_cast<double>(std::filesystem::file_size(folder / file));
  };
  EXPECT_LT((size("many.db", kPoints + 1) - size("one.db", 1)) / kPoints, 2048);
}

TEST(ResultStore, AFailureKeepsItsExitCode) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  RunRecord failed = example_record();
  failed.status = RunStatus::kFailed;
  store.save(failed, {"2025-11-03T09:12:44.120Z", 1.5, "node1", 6});
  EXPECT_EQ(store.database()->integer("SELECT exit_code FROM points"), 6);
}

TEST(ResultStore, AttemptsOfAFailureStayWithTheResultThatReplacesIt) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  RunRecord failed = example_record();
  failed.status = RunStatus::kFailed;
  failed.reason = "killed";
  RunTimes killed = {"2025-11-03T09:12:44.120Z", 1.5, "node1", 6, 9};
  killed.user_s = 1.25;
  killed.system_s = 0.25;
  killed.peak_bytes = 1 << 20;
  killed.stderr_tail = "the last words";
  store.save(failed, killed);
  Statement failure = store.database()->prepare(
      "SELECT reason, attempts, signal, user_s, system_s, peak_bytes, stderr FROM v_failures");
  ASSERT_TRUE(failure.step());
  EXPECT_EQ(failure.text(0), "killed");
  EXPECT_EQ(failure.integer(1), 1);
  EXPECT_EQ(failure.integer(2), 9);
  EXPECT_EQ(failure.real(3), 1.25);
  EXPECT_EQ(failure.real(4), 0.25);
  EXPECT_EQ(failure.integer(5), 1 << 20);
  EXPECT_EQ(failure.text(6), "the last words");
  failure.reset();
  EXPECT_EQ(store.save(example_record(), {"2025-11-04T09:12:44.120Z", 2.5, "node2"}),
            SaveOutcome::kReplacedFailure);
  const std::vector<RunTimes> attempts = store.times("id");
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[0].signal, 9);
  EXPECT_EQ(attempts[0].stderr_tail, "the last words");
  EXPECT_EQ(attempts[1].host, "node2");
  EXPECT_EQ(attempts[1].signal, 0);
  EXPECT_EQ(store.database()->integer("SELECT count(*) FROM v_failures"), 0);
  store.verify();
}

TEST(ResultStore, NoticesAChangedLink) {
  const TemporaryFolder folder;
  { ResultStore::open(folder / "r.db").save(example_record("r"), example_times()); }
  Database(folder / "r.db", Database::Mode::kWrite)
      .execute("UPDATE links SET bytes = bytes + 1 WHERE scope = 'link' AND position = 1");
  const ResultStore store = ResultStore::open_read_only(folder / "r.db");
  EXPECT_EQ(fault_of([&] { store.find("r"); }), StoreFault::kCorrupt);
}

TEST(ResultStore, TwoWritersTakeTurns) {
  const TemporaryFolder folder;
  ResultStore a = ResultStore::open(folder / "r.db");
  ResultStore b = ResultStore::open(folder / "r.db");
  for (int i = 0; i < 5; ++i) {
    a.save(example_record("a" + std::to_string(i)), example_times());
    b.save(example_record("b" + std::to_string(i)), example_times());
  }
  EXPECT_EQ(a.all().size(), 10u);
  EXPECT_EQ(b.all().size(), 10u);
}

/// Documented, and in no result here: still a column.
const DeclaredMetric kEnergy{{"energy_j", "J", "energy", "operator"}};

TEST(ResultStore, AnswersOneLineQuestions) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  store.save(example_record("slow", 2.0), example_times());
  store.save(example_record("fast", 1.0), example_times());
  Statement best = store.database()->prepare(
      "SELECT identity, step_time_s, bound, \"breakdown.compute_s\", wall_time_s, energy_j "
      "FROM v_runs ORDER BY step_time_s LIMIT 1");
  ASSERT_TRUE(best.step());
  EXPECT_EQ(best.text(0), "fast");
  EXPECT_EQ(best.real(1), 1.0);
  EXPECT_EQ(best.text(2), "memory");
  EXPECT_EQ(best.real(3), 1.0 / 3);
  EXPECT_EQ(best.real(4), 1.5);
  EXPECT_TRUE(best.is_null(5));
}

const DeclaredMetric kStep{{"step_time_s", "s", "a step", "training", Follows::kTime}};
const DeclaredMetric kTokens{{"tokens_per_s", "tokens/s", "a rate", "training", Follows::kRate}};

TEST(ResultStore, ShowsTheBestOfEachMetricThatHasABetterEnd) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  for (const auto& [identity, time] :
       {std::pair{"slow", 2.0}, std::pair{"fast", 1.0}, std::pair{"wrong", 0.5}}) {
    RunRecord record = example_record(identity, time);
    record.metrics.push_back({"tokens_per_s", 8 / time, "tokens/s"});
    if (identity == std::string("wrong")) record.status = RunStatus::kInfeasible;
    store.save(record, example_times());
  }
  Statement best =
      store.database()->prepare("SELECT metric, best, value, identity FROM v_best ORDER BY metric");
  for (const auto& [metric, end, value] :
       {std::tuple{"step_time_s", "least", 1.0}, std::tuple{"tokens_per_s", "most", 8.0}}) {
    ASSERT_TRUE(best.step());
    EXPECT_EQ(best.text(0), metric);
    EXPECT_EQ(best.text(1), end);
    EXPECT_EQ(best.real(2), value);
    EXPECT_EQ(best.text(3), "fast");
  }
  EXPECT_FALSE(best.step());
}

TEST(ResultStore, QuestionsUseIndexes) {
  const TemporaryFolder folder;
  ResultStore store = ResultStore::open(folder / "r.db");
  store.save(example_record(), example_times());
  const auto plan = [&](const std::string& sql) {
    Statement explain = store.database()->prepare("EXPLAIN QUERY PLAN " + sql);
    std::string text;
    while (explain.step()) text += explain.text(3) + "\n";
    return text;
  };
  EXPECT_THAT(plan("SELECT digest FROM points WHERE identity = 'x'"), HasSubstr("USING INDEX"));
  EXPECT_THAT(plan("SELECT min(identity) FROM points WHERE identity > 'x'"),
              HasSubstr("USING COVERING INDEX"));
  EXPECT_THAT(plan("SELECT * FROM metrics_training WHERE point = 1"),
              HasSubstr("USING INTEGER PRIMARY KEY"));
  EXPECT_THAT(plan("SELECT step_time_s FROM v_runs WHERE identity = 'x'"), Not(HasSubstr("SCAN")));
  EXPECT_THAT(plan("SELECT wall_time_s FROM v_runs"), Not(HasSubstr("CORRELATED")));
  EXPECT_THAT(plan("SELECT step_time_s FROM v_runs"), Not(HasSubstr("attempts")))
      << "not asked for";
  EXPECT_THAT(
      plan("SELECT status, experiment, engine_version, count(*) FROM points GROUP BY 1, 2, 3"),
      HasSubstr("USING COVERING INDEX points_by_status"));
  EXPECT_THAT(plan("SELECT * FROM v_failures"), HasSubstr("SEARCH points USING INDEX"));
}

}  // namespace
}  // namespace orrery::result_store_test
