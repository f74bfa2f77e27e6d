// SPDX-License-Identifier: Apache-2.0
#include "host/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "host/files.h"
#include "host/isolate.h"
#include "host/table.h"

namespace orrery::measure::runner_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class InFolder : public testing::Test {
 protected:
  InFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "measure_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~InFolder() override { std::filesystem::remove_all(folder_); }

  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_;
};

TEST(Isolate, HandsBackWhatTheWorkReturns) {
  const std::string large(200000, 'x');  // more than a pipe holds
  const Ending ending = isolate([&] { return large; }, 20);
  EXPECT_EQ(ending.kind, Ending::Kind::kReturned);
  EXPECT_EQ(ending.text, large);
}

TEST(Isolate, HandsBackTheTextOfAnException) {
  const Ending ending = isolate([]() -> std::string { throw std::runtime_error("broken"); }, 20);
  EXPECT_EQ(ending.kind, Ending::Kind::kThrew);
  EXPECT_EQ(ending.text, "broken");
}

TEST(Isolate, OutlivesACrash) {
  const auto crash = []() -> std::string {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return "not reached";
  };
  const Ending ending = isolate(crash, 20);
  EXPECT_EQ(ending.kind, Ending::Kind::kCrashed);
  EXPECT_EQ(ending.text, "ended by signal 11");
}

TEST(Isolate, NamesAnExitCodeThatIsNotItsOwn) {
  const Ending ending = isolate([]() -> std::string { _exit(9); }, 20);
  EXPECT_EQ(ending.kind, Ending::Kind::kCrashed);
  EXPECT_EQ(ending.text, "ended with exit code 9");
}

TEST(Isolate, KillsWhatDoesNotEnd) {
  const auto wait = []() -> std::string {
    sleep(60);
    return "it ended by itself";
  };
  EXPECT_EQ(isolate(wait, 0.2).kind, Ending::Kind::kTimedOut);
}

void three_rows(const Context& context, Table& table) {
  for (int i = 0; i < 3; ++i) {
    table.add_row({std::int64_t{i}, context.device.major + 0.5});
  }
}
void fails_after_a_row(const Context&, Table& table) {
  table.add_row({std::int64_t{1}, 1.0});
  throw WrongResult("sum differs");
}
void dies_after_a_row(const Context&, Table& table) {
  table.add_row({std::int64_t{1}, 1.0});
  _exit(7);
}
void fails_at_once(const Context&, Table&) { throw std::runtime_error("no memory"); }
void until_the_deadline(const Context& context, Table& table) {
  std::int64_t i = 0;
  do {  // at least one row: on a busy machine the budget may be over before the process starts
    table.add_row({i++, 1.0});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (!context.out_of_time());
}

Measurement of(int number, const char* name, void (*run)(const Context&, Table&)) {
  return {number, name, "", 8, 5, 5, {"i", "x_us"}, run};
}

class Runner : public InFolder {
 protected:
  std::vector<Outcome> run_these(const std::vector<Measurement>& all) {
    std::vector<const Measurement*> selected;
    for (const Measurement& measurement : all) selected.push_back(&measurement);
    measure::Run run;
    run.out = folder_;
    run.open_device = [] {
      Context context;
      context.device.major = 8;
      return context;
    };
    run.device_section = "device: {}\n";
    run.log = &log_;
    return run_all(selected, run);
  }

  std::ostringstream log_;
};

TEST_F(Runner, ABrokenMeasurementDoesNotStopTheOthers) {
  const auto outcomes =
      run_these({of(1, "throws", fails_after_a_row), of(2, "dies", dies_after_a_row),
                 of(3, "empty", fails_at_once), of(4, "works", three_rows)});
  ASSERT_EQ(outcomes.size(), 4u);
  EXPECT_EQ(outcomes[0].status, Status::kFailed);
  EXPECT_EQ(outcomes[0].reason, "sum differs");
  EXPECT_EQ(outcomes[1].status, Status::kFailed);
  EXPECT_EQ(outcomes[1].reason, "ended with exit code 7");
  EXPECT_EQ(outcomes[2].status, Status::kFailed);
  EXPECT_EQ(outcomes[3].status, Status::kOk);
  EXPECT_EQ(text_of("works.csv"), "i,x_us\n0,8.5\n1,8.5\n2,8.5\n");
}

TEST_F(Runner, KeepsTheRowsBeforeAFailureAndNoFileWithoutRows) {
  const auto outcomes = run_these({of(1, "throws", fails_after_a_row),
                                   of(2, "dies", dies_after_a_row), of(3, "empty", fails_at_once)});
  EXPECT_EQ(outcomes[0].rows, 1);
  EXPECT_EQ(outcomes[1].rows, 1);
  EXPECT_EQ(outcomes[2].rows, 0);
  EXPECT_EQ(text_of("throws.csv"), "i,x_us\n1,1\n");
  EXPECT_EQ(text_of("dies.csv"), "i,x_us\n1,1\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "empty.csv"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "throws.csv.part"));
}

TEST_F(Runner, NotesEveryOutcomeInTheEnvironment) {
  run_these({of(1, "throws", fails_after_a_row), of(2, "works", three_rows)});
  const std::string text = text_of("environment.yaml");
  EXPECT_THAT(text, HasSubstr("device: {}\n"));
  EXPECT_THAT(text, HasSubstr("name: throws\n    status: failed\n    reason: \"sum differs\"\n"));
  EXPECT_THAT(text, HasSubstr("name: works\n    status: ok\n    rows: 3\n"));
  EXPECT_THAT(log_.str(), HasSubstr("[1/2] throws: 1 rows"));
  EXPECT_THAT(log_.str(), HasSubstr("FAILED: sum differs"));
  EXPECT_THAT(log_.str(), HasSubstr("[2/2] works: 3 rows"));
}

TEST_F(Runner, SkipsWhatTheChipIsTooOldFor) {
  Measurement hopper = of(7, "hopper", three_rows);
  hopper.capability = 9;
  const auto outcomes = run_these({hopper});
  EXPECT_EQ(outcomes[0].status, Status::kSkipped);
  EXPECT_EQ(outcomes[0].reason, "needs compute capability 9");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "hopper.csv"));
}

TEST_F(Runner, GivesEachMeasurementItsBudgetAndSaysWhenItWasUsedUp) {
  Measurement slow = of(1, "slow", until_the_deadline);
  slow.quick_s = 0.2;
  const auto outcomes = run_these({slow});
  EXPECT_EQ(outcomes[0].status, Status::kOk);
  EXPECT_EQ(outcomes[0].reason, "stopped at its time budget");
  EXPECT_GE(outcomes[0].rows, 1);
  EXPECT_LE(outcomes[0].rows, 10);  // 0.2 s in steps of 20 ms
}

TEST_F(Runner, LeavesNoRowsOfAnEarlierRun) {
  run_these({of(1, "twice", three_rows)});
  run_these({of(1, "twice", fails_at_once)});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "twice.csv"));
}

using Files = InFolder;

TEST_F(Files, AreWrittenWholeAndLeaveNoPart) {
  write_file(folder_ / "a.txt", "one");
  write_file(folder_ / "a.txt", "two");
  EXPECT_EQ(text_of("a.txt"), "two");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.txt.part"));
  EXPECT_THROW(write_file(folder_ / "none" / "a.txt", "x"), std::runtime_error);
}

TEST_F(Files, ArePackedUnderTheirOwnNames) {
  write_file(folder_ / "a.csv", "1");
  write_file(folder_ / "b.csv", "2");
  write_file(folder_ / "left_out", "3");
  archive(folder_, {"a.csv", "b.csv"});
  const std::string list = "tar -tzf '" + (folder_ / "measurements.tar.gz").string() + "' > '" +
                           (folder_ / "list").string() + "'";
  ASSERT_EQ(std::system(list.c_str()), 0);
  EXPECT_EQ(text_of("list"), "a.csv\nb.csv\n");
  EXPECT_THROW(archive(folder_, {"missing.csv"}), std::runtime_error);
}

}  // namespace
}  // namespace orrery::measure::runner_test
