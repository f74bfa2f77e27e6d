// SPDX-License-Identifier: Apache-2.0
// Steps whose kernels differ by rank and by run.
#include <gtest/gtest.h>

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/keys/rank_noise.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/graph/images.h"

namespace orrery::noise_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

/// Eight data parallel ranks whose reductions run behind their passes.
RunRecord result_of(std::vector<std::string> changes) {
  changes.insert(changes.begin(),
                 {"system=dgx_h100", "parallel={dp: 8, zero: 1}",
                  "batch={global: 8, sequence: 1024}", "software=megatron_core",
                  "model={dimensions: {layers: 2, hidden: 4096, heads: 32, vocabulary: 32000}}",
                  "contention.transfers=false"});
  return simulate_isolated(load_experiment(kConfigs + "/experiments/selene_22b.yaml", changes,
                                           config::Library(kConfigs)))
      .record;
}

double value(const RunRecord& record, const char* name) { return record.find(name)->value; }

std::string bytes_of(const RunRecord& record) {
  std::string text;
  for (const Metric& metric : record.metrics)
    text += metric.name + " " + std::to_string(metric.value) + "\n";
  return text;
}

TEST(Noise, OfNothingIsNone) {
  const std::string none = bytes_of(result_of({}));
  EXPECT_EQ(none, bytes_of(result_of({"noise={kernels: 0, ranks: 0, seed: 7}"})));
  EXPECT_EQ(none, bytes_of(result_of({"noise={stragglers: {fraction: 0.5, slowdown: 1}}"})));
  EXPECT_EQ(none, bytes_of(result_of({"noise={stragglers: {slowdown: 1.5}}"})));
}

TEST(Noise, IsThatOfItsSeed) {
  const std::vector<std::string> noisy = {"noise={kernels: 0.05, ranks: 0.02, seed: 3}", "steps=3"};
  const std::string once = bytes_of(result_of(noisy));
  EXPECT_EQ(once, bytes_of(result_of(noisy)));
  EXPECT_NE(once, bytes_of(result_of({noisy[0], noisy[1], "noise.seed=4"})));
}

TEST(Noise, CostsMoreTheMoreThereIs) {
  for (const char* key : {"noise.kernels=", "noise.ranks="}) {
    double before = value(result_of({"fold=off"}), "step_time_s");
    for (const char* amplitude : {"0.01", "0.03", "0.1"}) {
      const double now =
          value(result_of({std::string(key) + amplitude, "steps=5"}), "step_time_mean_s");
      EXPECT_GT(now, before) << key << amplitude;
      before = now;
    }
  }
}

// Kernels of one rank take 1.5 times as long, and all others wait for it.
TEST(Noise, OneStragglerDelaysAllByWhatItsKernelsTakeLonger) {
  const RunRecord all = result_of({"fold=off"});
  const RunRecord slow = result_of({"noise={stragglers: {ranks: [5], slowdown: 1.5}}"});
  const double kernels = value(all, "breakdown.compute_s") + value(all, "breakdown.optimizer_s") +
                         value(all, "breakdown.host_s");
  const double longer = value(slow, "step_time_s") - value(all, "step_time_s");
  EXPECT_NEAR(longer, 0.5 * kernels, 1e-6 * kernels);
  EXPECT_EQ(value(slow, "step_time_worst_s"), value(slow, "step_time_p10_s"));
}

TEST(Noise, QuantilesAreInOrder) {
  const RunRecord record = result_of({"noise.kernels=0.1", "steps=21"});
  double before = 0;
  for (const char* name : {"step_time_p10_s", "step_time_p50_s", "step_time_p90_s",
                           "step_time_p99_s", "step_time_worst_s"}) {
    EXPECT_GT(value(record, name), 0.999999 * before) << name;
    before = value(record, name);
  }
  EXPECT_GT(value(record, "step_time_worst_s"), value(record, "step_time_p10_s"));
  EXPECT_EQ(value(record, "step_time_s"), value(record, "step_time_p50_s"));
}

/// One kernel of a microsecond on each rank, then all meet.
Program meeting_of(int ranks) {
  Program program;
  program.streams = {"compute"};
  program.ranks = ranks;
  program.kernels.resize(1);
  Role role{"all", {0}, {}};
  Transfer transfer;
  for (int rank = 0; rank < ranks; ++rank) role.ranks.push_back(rank);
  transfer.groups = {role.ranks};
  program.transfers = {transfer};
  OperatorGraph block;
  block.add({"work", OperatorKind::kCompute, Category::kCompute, 0, 0});
  block.add({"meet", OperatorKind::kCollective, Category::kCommunication, 0, 0});
  block.depends(1, 0);
  program.blocks.push_back(block);
  program.block_names = {"all"};
  program.roles = {role};
  return program;
}

// The larger of two lognormal factors of mean 1 is 2 Phi(s / sqrt(2)) on average, s^2 = ln(1 +
// sd^2): the integral of x over the half of the plane where x > y, twice.
TEST(Noise, TheSlowerOfTwoRanksIsAsOrderStatisticsSay) {
  constexpr double kDeviation = 0.2;
  constexpr int kSteps = 4000;
  const Program program = meeting_of(2);
  const Images images(program);
  Costs costs;
  costs.kernels = {{1'000'000}};
  costs.transfers = {{}};
  NoiseConfig config;
  config.kernels = kDeviation;
  RankNoise noise(config, RankLayout{}, 2);
  ReplayOptions options;
  options.images = &images;
  options.variation = &noise;
  double sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    noise.set_step(step);
    sum += static_cast<double>(replay(program, costs, options).end) / 1e6;
  }
  const double s = std::sqrt(std::log1p(kDeviation * kDeviation));
  const double expected = 1 + boost::math::erf(s / 2);  // 2 Phi(x) = 1 + erf(x / sqrt(2))
  // Of the mean of 4,000 draws; the larger of two deviates less than one.
  const double deviation = kDeviation / std::sqrt(static_cast<double>(kSteps));
  EXPECT_NEAR(sum / kSteps, expected, 3 * deviation);
}

}  // namespace
}  // namespace orrery::noise_test
