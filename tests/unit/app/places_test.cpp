// SPDX-License-Identifier: Apache-2.0
// Places of a plan as tasks have them, and plans of which only some places are gone to.
#include "sim/app/sweeps/base/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/app/sweeps/executors/execution.h"
#include "sim/app/sweeps/executors/task_executor.h"
#include "sim/app/sweeps/executors/task_folder.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/config/load.h"
#include "tests/unit/app/sweep_file.h"

namespace orrery::places_test {
namespace {

TEST(Places, AreReadAsTheyAreWritten) {
  const Places places = {{0, 100}, {120, 121}};
  EXPECT_EQ(to_text(places), "0..100,120..121");
  EXPECT_EQ(parse_places(to_text(places)), places);
  for (const char* wrong : {"", "5", "5..5", "5..", "..5", "0..5,", "0..5 ", "5..9,0..3",
                            "0..5,4..9", "-1..5", "0..99999999999999999999"})
    EXPECT_EQ(parse_places(wrong), std::nullopt) << wrong;
}

TEST(Places, JoinWhatIsNextToEachOther) {
  Places places;
  for (const std::size_t place : {3U, 4U, 7U}) append(places, place);
  EXPECT_EQ(to_text(places), "3..5,7..8");
  append(places, 10, true);  // 8 and 9 are no points
  EXPECT_EQ(to_text(places), "3..5,7..11");
  EXPECT_EQ(to_text(joined({{0, 4}, {20, 30}}, places)), "0..5,7..11,20..30");
  EXPECT_EQ(size_of(places), 6U);
  EXPECT_TRUE(has_place(places, 10));
  EXPECT_FALSE(has_place(places, 5));
  EXPECT_FALSE(has_place(places, 11));
}

TEST(Places, InPartsAreTheSamePlaces) {
  const Places places = {{0, 10}, {20, 21}, {30, 35}};
  Places again;
  for (const Places& part : in_parts(places, 4)) {
    EXPECT_LE(size_of(part), 4U);
    again = joined(again, part);
  }
  EXPECT_EQ(again, places);
  EXPECT_EQ(in_parts(places, 4).size(), 4U);
  Places scattered;
  for (std::size_t i = 0; i < 2500; ++i) append(scattered, 2 * i);
  EXPECT_EQ(in_parts(scattered, 1000000).size(), 3U);  // as a command line takes no more
}

TEST(Places, AloneAreGoneTo) {
  const SweepFile file(
      "sweep: s\ncases:\n  - name: c\n    base: {experiment: operator, system: dgx_h100, "
      "operator: {kind: gemm, m: 64, n: 64, k: 64}}\n"
      "    axes: {grid: {operator.m: {range: {from: 1, to: 20, step: 1}}}}\n");
  const Sweep sweep = load_sweep(file.path());
  std::vector<std::uint64_t> gone_to;
  for (PlanCursor at(sweep, {{2, 4}, {9, 10}, {19, 40}}); !at.at_end(); at.next())
    gone_to.push_back(at.place());
  EXPECT_THAT(gone_to, ::testing::ElementsAre(2, 3, 9, 19));
}

TEST(Tasks, AreWhatTheirFolderSaysAfterwards) {
  const std::filesystem::path below =
      std::filesystem::temp_directory_path() / ("orrery_tasks_" + std::to_string(::getpid()));
  const TaskFolder made = TaskFolder::make(below, "slurm", {{{0, 10}}, {{10, 12}, {15, 16}}});
  const std::vector<TaskFolder> found = TaskFolder::all(below);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].tasks(), made.tasks());
  EXPECT_EQ(found[0].executor(), "slurm");
  EXPECT_EQ(found[0].ended(1), std::nullopt);
  write_ended(made.shard(1), {{11, 12}});
  EXPECT_EQ(found[0].ended(1), (Places{{11, 12}}));
  write_ended(made.shard(0), {});
  EXPECT_EQ(found[0].ended(0), Places{});
  made.set_merged(0);
  EXPECT_TRUE(found[0].is_merged(0));
  EXPECT_FALSE(found[0].is_merged(1));
  std::filesystem::remove_all(below);
}

TEST(Execution, OfTheCommandLineIsLaidOverThatOfTheSweep) {
  const SweepFile file("executor: slurm\npartition: cpu\ncpus: 4\n");
  config::Diagnostics diagnostics;
  const config::Node written = config::load_file(file.path(), diagnostics);
  const auto of_file = execution_of(&written, "", {"cpus=2"});
  EXPECT_EQ(of_file.name, "slurm");
  EXPECT_EQ(of_file->cpus, 2);
  EXPECT_EQ(execution_of(&written, "slurm", {})->cpus, 4);
  const auto other = execution_of(&written, "command", {"launcher='{work}'"});
  EXPECT_EQ(other.name, "command");
  EXPECT_EQ(other->cpus, 1);  // what the file says is of another executor
  EXPECT_EQ(execution_of(nullptr, "", {})->make(), nullptr);
  EXPECT_THROW(execution_of(&written, "", {"partiton=gpu"}), config::ConfigError);
  EXPECT_THROW(execution_of(nullptr, "command", {"launcher='echo hello'"}), config::ConfigError);
}

}  // namespace
}  // namespace orrery::places_test
