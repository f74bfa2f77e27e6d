// SPDX-License-Identifier: Apache-2.0
#include "sim/store/row_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "sim/store/garbage.h"
#include "sim/store/point_table.h"
#include "sim/store/result_store.h"
#include "tests/unit/results/example.h"

namespace orrery::row_groups_test {
namespace {

constexpr int kPoints = 2500;  // two groups, and points that are in none
const std::vector<std::string> kNames = {"step_time_s",     "bound",       "step_time_s.p10",
                                         "step_time_s.p90", "bandwidth",   "flash",
                                         "precision",       "parallel.tp", "name",
                                         "reason",          "exit_code",   "status",
                                         "engine_version",  "experiment",  "events",
                                         "identity",        "ttft_mean_s", "no such name"};

RunRecord example_point(int i) {
  RunRecord record = example_record("p" + std::to_string(i), 0.001 * (i + 1));
  record.base = example_configuration("8");
  if (i % 3 > 0)
    record.varied = {{{"bandwidth", std::to_string(i) + " TB/s", i * 1e12, "B/s", "s.yaml:1:2"},
                      std::to_string(i) + "000000000000.0"}};
  if (i % 5 == 0)
    record.varied.push_back({{"flash", "false", std::nullopt, "", "s.yaml:1:1"}, "false"});
  record.labels = {{"bound", i % 7 == 0 ? "latency" : "memory"}};
  if (i % 50 == 49) {
    record.status = i % 100 == 99 ? RunStatus::kFailed : RunStatus::kInfeasible;
    record.reason = i % 4 == 3 ? "out of memory" : "";
    record.metrics.clear();
    record.labels.clear();
  }
  if (i % 11 == 10) record.experiment = "inference";
  return record;
}

/// What the columns of a table say, to the bit.
std::string told_by(const PointTable& table, const std::vector<std::string>& names = kNames) {
  std::string text;
  for (const std::string& name : names) {
    const auto column = table.column(name);
    text += "\n" + name;
    if (!column) continue;
    text += " [" + column->unit + "]";
    for (std::size_t row = 0; row < table.size(); ++row) {
      text += " ";
      if (!column->has(row)) continue;
      std::uint64_t bits = 0;
      if (column->kind != PointColumn::Kind::kWord)
        std::memcpy(&bits, &column->numbers[row], sizeof bits);
      text += column->kind == PointColumn::Kind::kWord ? "'" + column->word(row) + "'"
                                                       : std::to_string(bits);
    }
  }
  return text;
}

std::string axes_of_table(const PointTable& table) {
  std::string text;
  for (const std::string& axis : table.axes()) text += axis + " ";
  return text;
}

class RowGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    ResultStore store = ResultStore::open(path());
    for (int first = 0; first < kPoints; first += 500) {
      auto batch = store.begin();
      for (int i = first; i < first + 500; ++i) batch.save(example_point(i), example_times());
      batch.commit();
    }
  }

  std::filesystem::path path() const { return folder_ / "r.db"; }
  void change(const std::string& sql) const {
    Database(path(), Database::Mode::kWrite).execute(("PRAGMA foreign_keys = ON; " + sql).c_str());
  }
  std::int64_t groups() const {
    return Database(path(), Database::Mode::kRead).integer("SELECT count(*) FROM row_groups");
  }
  std::string told() const {
    const Database database(path(), Database::Mode::kRead);
    const PointTable table(database);
    return told_by(table) + axes_of_table(table);
  }

  TemporaryFolder folder_;
};

TEST_F(RowGroups, SayWhatTheRowsSay) {
  ASSERT_EQ(groups(), 2);
  const std::string by_groups = told();
  change("DELETE FROM row_groups");
  EXPECT_EQ(Database(path(), Database::Mode::kRead).integer("SELECT count(*) FROM column_chunks"),
            0);
  const std::string by_rows = told();
  EXPECT_TRUE(by_groups == by_rows);  // of a megabyte, which a message would print
  EXPECT_THAT(by_rows, testing::HasSubstr("bandwidth flash"));
}

TEST_F(RowGroups, LeaveOnlyTheLastPointsToBeCheckedOneByOne) {
  const Database database(path(), Database::Mode::kRead);
  const PointTable table(database);
  EXPECT_EQ(table.unchecked().size(), kPoints - 2047);  // points count from 1
  EXPECT_EQ(table.unchecked().front(), 2047U);
}

TEST_F(RowGroups, GoWithAChangeOfAPointAndComeBack) {
  RunRecord again = example_point(99);
  again.status = RunStatus::kOk;
  again.metrics = {{"step_time_s", 7, "s"}};
  {
    ResultStore store = ResultStore::open(path());
    EXPECT_EQ(store.save(again, example_times()), SaveOutcome::kReplacedFailure);
    EXPECT_EQ(groups(), 1);
    store.group_rows();
  }
  EXPECT_EQ(groups(), 2);
  const std::string by_groups = told();
  EXPECT_THAT(axes_of_table(PointTable(Database(path(), Database::Mode::kRead))),
              testing::HasSubstr("bandwidth"));
  change("DELETE FROM row_groups");
  EXPECT_TRUE(by_groups == told());
}

TEST_F(RowGroups, OfADamagedPointAreNotMade) {
  change("DELETE FROM row_groups; UPDATE metrics_training SET step_time_s = 9 WHERE point = 1502");
  ResultStore store = ResultStore::open(path());
  store.save(example_point(kPoints), example_times());
  store.group_rows();
  EXPECT_EQ(groups(), 1);
}

TEST_F(RowGroups, ThatAreDamagedAreNeverRead) {
  change(
      "UPDATE column_chunks SET content = x'00' WHERE row_group = 1 AND name LIKE '%/step_time_s'");
  const Database database(path(), Database::Mode::kRead);
  const PointTable table(database);
  EXPECT_NO_THROW(table.column("bandwidth"));
  EXPECT_THROW(table.column("step_time_s"), StoreError);
  change("DELETE FROM column_chunks WHERE row_group = 0");
  EXPECT_THROW(table.column("bandwidth"), StoreError);
  change("UPDATE row_groups SET digest = 'other' WHERE row_group = 1");
  EXPECT_THROW(PointTable{database}, StoreError);
}

TEST_F(RowGroups, ThatAreDamagedComeBackWithGc) {
  const std::string whole = told();
  change(
      "UPDATE column_chunks SET content = x'00' WHERE row_group = 1 AND name LIKE '%/step_time_s'");
  change("UPDATE row_groups SET digest = 'other' WHERE row_group = 0");
  drop_garbage(path(), {});
  EXPECT_EQ(groups(), 2);
  EXPECT_TRUE(told() == whole);
}

TEST_F(RowGroups, AreMadeAnewWhereOlderEnginesGo) {
  change("UPDATE points SET engine_version = '1' WHERE point < 600");
  drop_garbage(path(), {.failures = true, .older_engines = true});
  EXPECT_EQ(groups(), 2);
  const std::string by_groups = told();
  change("DELETE FROM row_groups");
  EXPECT_TRUE(by_groups == told());
}

TEST_F(RowGroups, LeaveNoPointTwiceWhoseRowHasANumberOfAnother) {
  // Page, cell and number of a row whose number is 2,100, made 2,108: they follow each other.
  std::string bytes;
  {
    std::ifstream file(path(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::string number = "\x90\x34";  // 2,100 as a varint, before a header of a row
  std::size_t changed = 0;
  for (std::size_t at = bytes.find(number); at != std::string::npos;
       at = bytes.find(number, at + 1)) {
    if (bytes.find("p2099", at) > at + 40) continue;
    bytes[at + 1] = '\x3c';
    ++changed;
  }
  ASSERT_GE(changed, 1U);
  std::ofstream(path(), std::ios::binary) << bytes;
  const Database database(path(), Database::Mode::kRead);
  EXPECT_THROW(PointTable{database}, StoreError);
}

/// ORRERY_FLIPS=10000 tries as many; ORRERY_FLIP_SEED=7 tries others.
int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// As questions do: what is in no group is read as a whole.
std::string checked_answer(const std::filesystem::path& path) {
  const ResultStore store = ResultStore::open_read_only(path);
  const PointTable table(*store.database());
  std::string answer = told_by(table, {"step_time_s", "bandwidth", "status", "bound"});
  for (const std::size_t row : table.unchecked()) {
    const std::string identity = store.database()->text(
        "SELECT identity FROM points WHERE point = " + std::to_string(table.point(row)));
    if (!store.find(identity)) throw StoreError(StoreFault::kOther, "a point is gone");
  }
  return answer;
}

TEST_F(RowGroups, WithAFlippedByteAnswerRightOrNotAtAll) {
  std::string whole;
  {
    change("DELETE FROM points WHERE point > 1100");  // groups of 1,023 points, and 77 in none
    ResultStore::open(path()).save(example_point(kPoints), example_times());
    change("VACUUM");
    std::ifstream file(path(), std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::string truth = checked_answer(path());
  std::mt19937_64 random(static_cast<std::uint64_t>(number_of("ORRERY_FLIP_SEED", 1)));
  std::uniform_int_distribution<std::size_t> place(0, whole.size() - 1);
  std::uniform_int_distribution<int> bit(0, 7);
  const int flips = number_of("ORRERY_FLIPS", 100);
  int found = 0;
  for (int i = 0; i < flips; ++i) {
    std::string damaged = whole;
    const std::size_t at = place(random);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit(random)));
    const auto path = folder_ / "damaged.db";
    std::ofstream(path, std::ios::binary) << damaged;
    try {
      EXPECT_TRUE(checked_answer(path) == truth) << "byte " << at;
    } catch (const StoreError&) {
      ++found;
    }
  }
  EXPECT_GT(found, 0) << "of " << flips;
}

TEST(ColumnBytes, AreReadBackToTheBit) {
  const auto there_and_back = [](const PointColumn& column, std::size_t rows) {
    ColumnBuilder builder(PointColumn::empty(column.kind, "", rows + 1));
    from_bytes(to_bytes(column), 1, rows, builder);
    for (std::size_t row = 0; row < rows; ++row) {
      ASSERT_EQ(builder.column().has(row + 1), column.has(row));
      if (!column.has(row)) continue;
      if (column.kind == PointColumn::Kind::kWord) {
        EXPECT_EQ(builder.column().word(row + 1), column.word(row));
      } else {
        EXPECT_EQ(builder.column().numbers[row + 1], column.numbers[row]);
      }
    }
  };
  for (const std::size_t different : {1U, 2U, 256U, 257U, 1000U}) {
    PointColumn numbers = PointColumn::empty(PointColumn::Kind::kNumber, "", 1000);
    ColumnBuilder words(PointColumn::empty(PointColumn::Kind::kWord, "", 1000));
    for (std::size_t row = 0; row < 1000; ++row) {
      if (row % different != 1)
        numbers.numbers[row] = 1.0 / static_cast<double>(1 + row % different);
      if (row % different != 2) words.set(row, std::to_string(row % different));
    }
    there_and_back(numbers, 1000);
    there_and_back(words.column(), 1000);
  }
}

}  // namespace
}  // namespace orrery::row_groups_test
