// SPDX-License-Identifier: Apache-2.0
// A few rounds of a pipeline against all of them, replayed one by one.
#include <gtest/gtest.h>

#include <string>

#include "sim/replay/steady_rounds.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/training/training.h"

namespace orrery::steady_rounds_test {
namespace {

struct Pipeline {
  std::string schedule;
  int stages = 1, chunks = 1, micro_batches = 1;
};

Program program_of(const Pipeline& p) {
  TrainingConfig config;
  config.parallel.tp = 2;
  config.parallel.pp = p.stages;
  config.parallel.vpp = p.chunks;
  config.schedule = p.schedule;
  config.global_batch = p.micro_batches;
  config.sequence = 16;
  return build_training(small_llama(2 * p.stages * p.chunks), config).program;
}

/// Kernels of some hundred nanoseconds, no two alike, so that stages are uneven; messages share
/// links with nobody.
Costs costs_of(const Program& program) {
  Costs costs;
  for (std::size_t i = 0; i < program.kernels.size(); ++i)
    costs.kernels.push_back({100'000U + 7'919U * static_cast<unsigned>(i), 2'000, Bound::kTensor});
  for (std::size_t i = 0; i < program.transfers.size(); ++i)
    costs.transfers.push_back({50'000U + 1'009U * static_cast<unsigned>(i), {}});
  return costs;
}

void expect_same(const ReplayResult& a, const ReplayResult& b, const std::string& what) {
  EXPECT_EQ(a.end, b.end) << what;
  EXPECT_EQ(a.last_role, b.last_role) << what;
  EXPECT_EQ(a.events, b.events) << what;
  EXPECT_EQ(a.operators, b.operators) << what;
  ASSERT_EQ(a.roles.size(), b.roles.size()) << what;
  for (std::size_t i = 0; i < a.roles.size(); ++i) {
    const TimeBreakdown &first = a.roles[i].breakdown, &second = b.roles[i].breakdown;
    EXPECT_EQ(a.roles[i].end, b.roles[i].end) << what;
    EXPECT_EQ(first.compute, second.compute) << what;
    EXPECT_EQ(first.bubble, second.bubble) << what;
    EXPECT_EQ(first.exposed_communication, second.exposed_communication) << what;
    EXPECT_EQ(first.host, second.host) << what;
    EXPECT_EQ(first.idle, second.idle) << what;
    EXPECT_EQ(a.roles[i].block_time, b.roles[i].block_time) << what;
  }
}

std::optional<ReplayResult> by_a_few_rounds(const Program& program, const Costs& costs) {
  const std::optional<SteadyRounds> steady = SteadyRounds::find(program);
  if (!steady) return std::nullopt;
  const auto at = [&](std::size_t rounds) { return replay(steady->with(rounds), costs); };
  return steady->extrapolate(at(steady->few()), at(steady->few() + 1), at(2 * steady->few()));
}

TEST(SteadyRounds, AFewTellAllToThePicosecond) {
  const Pipeline pipelines[] = {{"1f1b", 1, 1, 200},  {"1f1b", 4, 1, 300},
                                {"1f1b", 6, 1, 1000}, {"interleaved", 4, 2, 800},
                                {"zb_h1", 4, 1, 400}, {"gpipe", 4, 1, 400}};
  for (const Pipeline& p : pipelines) {
    const std::string what = p.schedule + " of " + std::to_string(p.stages) + " stages";
    const Program program = program_of(p);
    const Costs costs = costs_of(program);
    const std::optional<ReplayResult> result = by_a_few_rounds(program, costs);
    ASSERT_TRUE(result.has_value()) << what;
    expect_same(*result, replay(program, costs), what);
  }
}

TEST(SteadyRounds, AFewRoundsAreNotLookedFor) {
  EXPECT_FALSE(SteadyRounds::find(program_of({"1f1b", 4, 1, 40})).has_value());
}

TEST(SteadyRounds, RoundsThatAddDifferentTimesSayNothing) {
  const Program program = program_of({"1f1b", 1, 1, 200});
  const std::optional<SteadyRounds> steady = SteadyRounds::find(program);
  ASSERT_TRUE(steady.has_value());
  ReplayResult few, one_more, twice;
  few.end = 100, one_more.end = 110;
  twice.end = 110 + 10 * static_cast<Picoseconds>(steady->few() - 1);
  EXPECT_TRUE(steady->extrapolate(few, one_more, twice).has_value());
  ++twice.end;
  EXPECT_FALSE(steady->extrapolate(few, one_more, twice).has_value());
}

}  // namespace
}  // namespace orrery::steady_rounds_test
