// SPDX-License-Identifier: Apache-2.0
// Points of sweeps: known without loading them, run in workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "sim/app/experiments/simulate.h"
#include "sim/app/questions/effects.h"
#include "sim/app/sweeps/local_workers.h"
#include "sim/app/sweeps/plan_cursor.h"
#include "sim/app/sweeps/run_point.h"
#include "sim/config/load.h"
#include "sim/results/record_bytes.h"
#include "sim/units/sha256.h"
#include "tests/unit/app/sweep_file.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// Compares the point at a cursor with what loading it gives. @return whether it can be
bool same_as_loaded(const Sweep& sweep, const PlanCursor& at) {
  const LoadedExperiment whole = sweep.load_whole(at.point());
  if (at.group() == nullptr || !whole.contradiction.empty()) {
    EXPECT_FALSE(whole.contradiction.empty());
    return false;
  }
  const PointGroup& group = *at.group();
  EXPECT_EQ(at.identity(), whole.identity) << Sweep::axes(at.point());
  const auto varied = group.varied(at.values());
  EXPECT_EQ(canonical_with(*group.configuration(), varied).dump(), whole.configuration.dump());
  EXPECT_EQ(parameters_with(*group.configuration(), varied), configuration_of(whole)->parameters);
  return true;
}

TEST(SweepPoints, HaveTheIdentityOfLoadedOnesInEverySweepOfTheLibrary) {
  constexpr std::uint64_t kMost = 24;  // of each sweep, as loading takes milliseconds
  std::size_t compared = 0;
  for (const auto& file : fs::directory_iterator(ORRERY_SOURCE_DIR "/configs/sweeps")) {
    if (file.path().extension() != ".yaml") continue;
    const Sweep sweep = load_sweep(file.path().string());
    const std::uint64_t step = std::max<std::uint64_t>(1, sweep.places() / kMost);
    PlanCursor cursor(sweep);
    for (std::uint64_t place = 0; place < sweep.places(); place += step) {
      cursor.seek(place);
      if (cursor.kind() == PlaceKind::kPoint) compared += same_as_loaded(sweep, cursor) ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 20U);
}

const std::vector<std::string> kBases = {
    "{experiment: operator, system: dgx_h100, operator: {kind: gemm, m: 64, n: 64, k: 64}}",
    "{experiment: collective, system: dgx_h100, collective: {kind: all_reduce, bytes: 1 MiB}}",
    "{experiment: inference, system: dgx_h100, model: llama_3_1_8b, phase: decode, kv_length: "
    "1024, "
    "parallel: {tp: 8}, batch: {micro: 4}}",
    "{experiment: training, system: dgx_h100, model: llama_3_1_8b, parallel: {tp: 8}, batch: "
    "{global: 4, micro: 1, sequence: 2048}}"};

TEST(SweepPoints, HaveTheIdentityOfLoadedOnesForRandomSettings) {
  std::mt19937 random(7);
  std::size_t compared = 0;
  for (const std::string& base : kBases) {
    config::Diagnostics diagnostics;
    const LoadedExperiment loaded =
        load_experiment(config::parse_yaml(base, "base.yaml", diagnostics), {}, diagnostics);
    const std::vector<config::Leaf> leaves = loaded.leaves();
    std::string list;
    for (int i = 0; i < 50;) {
      const config::Leaf& leaf = leaves[random() % leaves.size()];
      const std::vector<std::string> values = other_values(leaf);
      if (values.empty() || leaf.type->kind == config::TypeKind::kText) continue;
      // One that the sweep would refuse as a mistake is another test's.
      const std::string& value = values[random() % values.size()];
      try {
        config::Diagnostics one;
        load_experiment(config::parse_yaml(base, "base.yaml", one), {leaf.path + "=" + value}, one);
      } catch (const config::ConfigError&) {
        continue;
      }
      list += "      - {" + leaf.path + ": " + value + "}\n";
      ++i;
    }
    const SweepFile file("sweep: random\ncases:\n  - name: a\n    base: " + base +
                         "\n    axes:\n     list:\n" + list);
    const Sweep sweep = load_sweep(file.path());
    for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next())
      compared += same_as_loaded(sweep, cursor) ? 1 : 0;
  }
  EXPECT_EQ(compared, 200U);
}

TEST(SweepPoints, MadeTheShortWayGiveTheResultsOfLoadedOnes) {
  const SweepFile file(
      "sweep: short\ncases:\n  - name: gemm\n    base: " + kBases[0] +
      "\n    axes: {grid: {operator.m: [64, 128], precision: [bf16, fp8], seed: [0, 3]}}\n"
      "  - name: decode\n    base: " +
      kBases[2] + "\n    axes: {grid: {batch.micro: [2, 8], kv_length: [512, 4096]}}\n");
  const Sweep sweep = load_sweep(file.path());
  ASSERT_EQ(sweep.places(), 12U);
  std::set<std::string> digests;
  std::set<std::shared_ptr<const PointGroup>> groups;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next()) {
    const SweepPoint point = cursor.point();
    groups.insert(point.group);
    const auto quick = point.group->load(point.settings);
    ASSERT_TRUE(quick.has_value());
    const std::string digest = result_digest(simulate(*quick));
    EXPECT_EQ(digest, result_digest(simulate(sweep.load_whole(point)))) << Sweep::axes(point);
    digests.insert(digest);
  }
  EXPECT_GT(digests.size(), 10U);
  EXPECT_EQ(groups.size(), 2U);
}

TEST(SweepPoints, OneProcessSimulatesOneMachineAfterTheOther) {
  const auto load = [](const std::string& text) {
    config::Diagnostics diagnostics;
    return load_experiment(config::parse_yaml(text, "base.yaml", diagnostics), {}, diagnostics);
  };
  std::string other = kBases[2];
  other.replace(other.find("dgx_h100"), 8, "gb200_nvl72");
  const LoadedExperiment first = load(kBases[2]), second = load(other);
  const std::string fresh = to_json(simulate_isolated(first).record).dump();
  const std::string fresh_other = to_json(simulate_isolated(second).record).dump();
  EXPECT_EQ(to_json(simulate(first)).dump(), fresh);
  EXPECT_EQ(to_json(simulate(second)).dump(), fresh_other);
  EXPECT_EQ(to_json(simulate(first)).dump(), fresh);
  EXPECT_NE(fresh, fresh_other);
}

std::map<std::size_t, std::variant<std::string, Failure>> outcomes_of(LocalWorkers& workers) {
  std::map<std::size_t, std::variant<std::string, Failure>> all;
  for (auto some = workers.poll(); !some.empty(); some = workers.poll()) {
    for (PointOutcome& outcome : some) {
      EXPECT_EQ(all.count(outcome.point), 0U) << "given twice: " << outcome.point;
      all.emplace(outcome.point, std::move(outcome.result));
    }
  }
  return all;
}

TEST(Workers, DoEveryPointOnceWhateverTheirNumber) {
  for (const std::size_t jobs : {1U, 2U, 7U}) {
    LocalWorkers workers(
        jobs, [](std::size_t i) { return std::string(i * 100, 'x') + std::to_string(i); });
    workers.submit({0, 300});
    workers.submit({300, 500});
    const auto all = outcomes_of(workers);
    ASSERT_EQ(all.size(), 500U);
    for (const auto& [i, result] : all)
      EXPECT_EQ(std::get<std::string>(result), std::string(i * 100, 'x') + std::to_string(i));
  }
}

TEST(Workers, ADeathCostsThePointItHappenedInAndNoOther) {
  for (const std::size_t jobs : {1U, 3U}) {
    LocalWorkers workers(jobs, [](std::size_t i) -> std::string {
      if (i == 7) ::kill(::getpid(), SIGKILL);
      if (i == 20) {
        ::signal(SIGABRT, SIG_DFL);
        ::raise(SIGABRT);
      }
      if (i == 33) ::_exit(9);
      if (i == 40) throw config::ConfigError("wrong");
      return "done";
    });
    workers.submit({0, 100});
    const auto all = outcomes_of(workers);
    ASSERT_EQ(all.size(), 100U);
    const std::map<std::size_t, ExitCode> failed = {{7, ExitCode::kResource},
                                                    {20, ExitCode::kBug},
                                                    {33, ExitCode::kBug},
                                                    {40, ExitCode::kUsage}};
    for (const auto& [i, result] : all) {
      const auto* failure = std::get_if<Failure>(&result);
      ASSERT_EQ(failure != nullptr, failed.count(i) > 0) << i;
      if (failure == nullptr) continue;
      EXPECT_EQ(failure->code, failed.at(i)) << failure->message;
    }
    EXPECT_THAT(std::get<Failure>(all.at(7)).message, testing::HasSubstr("Killed"));
  }
}

TEST(Workers, ADeathKeepsItsSignalWhatItTookAndItsLastWords) {
  LocalWorkers workers(1, [](std::size_t i) -> std::string {
    std::fprintf(stderr, "words of %zu\n", i);
    if (i != 2) return "done";
    const std::string many(10000, 'x');
    std::fputs(many.c_str(), stderr);
    std::vector<char> memory(64'000'000, 'm');
    volatile char last = 0;
    for (int round = 0; round < 5; ++round)
      for (const char c : memory) last = static_cast<char>(last + c);
    std::fputs("the last words \xc3\xa4\x1b\n", stderr);
    ::raise(SIGKILL);
    return "";
  });
  workers.submit({0, 4});
  std::vector<PointOutcome> all;
  for (auto some = workers.poll(); !some.empty(); some = workers.poll())
    for (PointOutcome& outcome : some) all.push_back(std::move(outcome));
  ASSERT_EQ(all.size(), 4U);
  for (const PointOutcome& outcome : all) {
    const bool died = outcome.point == 2;
    EXPECT_EQ(outcome.use.signal, died ? SIGKILL : 0);
    EXPECT_EQ(outcome.use.stderr_tail.empty(), !died);
    EXPECT_GT(outcome.use.peak_bytes, died ? 60'000'000 : 1'000'000);
    if (!died) continue;
    EXPECT_GT(outcome.use.user_s, 0.01);
    EXPECT_GE(outcome.use.wall_s, 0.01);
    EXPECT_EQ(outcome.use.stderr_tail.size(), 4096U + 3) << "a control character is four";
    EXPECT_TRUE(outcome.use.stderr_tail.ends_with("xthe last words ??\\x1b\n"));
    EXPECT_THAT(outcome.use.stderr_tail, testing::Not(testing::HasSubstr("words of 1")));
  }
}

TEST(Workers, APointThatTakesTooLongFailsAlone) {
  LocalWorkers workers(
      2,
      [](std::size_t i) -> std::string {
        if (i == 5) ::sleep(30);
        return "done";
      },
      [](std::size_t i) { return std::chrono::milliseconds(i == 6 ? 0 : 200); });
  workers.submit({0, 40});
  const auto all = outcomes_of(workers);
  ASSERT_EQ(all.size(), 40U);
  for (const auto& [i, result] : all)
    EXPECT_EQ(std::get_if<Failure>(&result) != nullptr, i == 5) << i;
  EXPECT_EQ(std::get<Failure>(all.at(5)).code, ExitCode::kResource);
  EXPECT_THAT(std::get<Failure>(all.at(5)).message, testing::HasSubstr("point_timeout"));
}

TEST(Workers, RunManyPointsInOneProcess) {
  LocalWorkers workers(2, [](std::size_t) { return std::to_string(::getpid()); });
  workers.submit({0, 200});
  std::set<std::string> processes;
  for (const auto& [i, result] : outcomes_of(workers))
    processes.insert(std::get<std::string>(result));
  EXPECT_LE(processes.size(), 2U);
}

}  // namespace
}  // namespace orrery
