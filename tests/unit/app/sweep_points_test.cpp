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

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/questions/explain/effects.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/run/run_sweep.h"
#include "sim/app/sweeps/workers/local_workers.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/config/load.h"
#include "sim/results/record_bytes.h"
#include "sim/units/sha256.h"
#include "tests/unit/app/sweep_file.h"

namespace orrery::sweep_points_test {
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
  constexpr std::uint64_t kMost = 8;  // of each sweep, as loading takes milliseconds
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
    for (int i = 0; i < 20;) {
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
  EXPECT_EQ(compared, 80U);
}

// all_in_power follows the accelerators, in the identity too.
TEST(SweepPoints, HaveTheIdentityOfLoadedOnesWhereAcceleratorsOfASystemVary) {
  const SweepFile file(
      "sweep: sizes\ncases:\n  - name: sizes\n    base: {experiment: inference, system: {extends: "
      "gb200_nvl72, all_in_power: 132 kW}, model: llama_3_1_8b, phase: decode, kv_length: 1024, "
      "batch: {micro: 4}}\n    axes: {grid: {system.accelerators: [72, 36, 8], batch.micro: [4, "
      "8]}}\n  - name: shipped\n    base: {experiment: inference, system: gb200_nvl72, model: "
      "llama_3_1_8b, phase: decode, kv_length: 1024, batch: {micro: 4}}\n    axes: {grid: "
      "{system.accelerators: [72, 36, 8], batch.micro: [4, 8]}}\n");
  const Sweep sweep = load_sweep(file.path());
  std::map<std::string, std::set<double>> powers;
  std::size_t compared = 0;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next()) {
    compared += same_as_loaded(sweep, cursor) ? 1 : 0;
    const LoadedExperiment whole = sweep.load_whole(cursor.point());
    for (const config::Leaf& leaf : whole.leaves())
      if (leaf.path == "system.all_in_power")
        powers[compared <= 6 ? "written" : "shipped"].insert(*leaf.value);
  }
  EXPECT_EQ(compared, 12U);
  EXPECT_EQ(powers["written"], (std::set<double>{132e3}));  // beside the sweep of accelerators
  EXPECT_EQ(powers["shipped"].size(), 3U);
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

TEST(SweepPoints, ASignalKeepsWhatIsDoneAndTheNextRunGoesOn) {
  const SweepFile file("sweep: left\ncases:\n  - name: gemm\n    base: " + kBases[0] +
                       "\n    axes: {grid: {operator.m: {range: {from: 8, to: 8000, step: 8}}}}\n");
  const SweepFile stored("", "left.db");
  const Sweep sweep = load_sweep(file.path());
  ResultStore store = ResultStore::open(stored.path());
  SweepOptions options;
  options.jobs = 2;
  options.progress = [](const SweepTally& tally) {
    if (tally.simulated == 20) ::raise(SIGTERM);
  };
  const SweepResults left = run_sweep(sweep, store, options);
  EXPECT_FALSE(left.stopped.empty());
  EXPECT_GE(left.simulated, 20U);
  EXPECT_LT(left.simulated, 1000U);

  options.progress = {};
  const SweepResults rest = run_sweep(sweep, store, options);
  EXPECT_EQ(rest.stopped, "");
  EXPECT_EQ(rest.from_store, left.simulated);
  EXPECT_EQ(rest.from_store + rest.simulated, 1000U);
}

}  // namespace
}  // namespace orrery::sweep_points_test
