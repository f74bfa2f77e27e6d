// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/rank_replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/pricing/rank_prices.h"

namespace orrery {
namespace {

const DeclaredMetric kReplayedRanks{{"replayed_ranks", "1",
                                     "ranks that were replayed, each on its own",
                                     "training, inference, layers"}};
const DeclaredMetric kReplayedOperators{{"replayed_operators", "1",
                                         "operators of all ranks of one step, each replayed",
                                         "training, inference, layers"}};
const DeclaredMetric kFolding{
    {"folding", "", "why ranks were replayed one by one", "training, inference, layers"}};
const DeclaredMetric kMeanStep{{"step_time_mean_s", "s", "mean time of the steps with noise",
                                "training, inference, layers", Follows::kTime}};
const DeclaredMetric kWorstStep{{"step_time_worst_s", "s", "time of the slowest step with noise",
                                 "training, inference, layers", Follows::kTime}};

const DeclaredMetric kP10{{"step_time_p10_s", "s", "time that 10 % of the steps with noise keep",
                           "training, inference, layers", Follows::kTime}};
const DeclaredMetric kP50{{"step_time_p50_s", "s", "time that half of the steps with noise keep",
                           "training, inference, layers", Follows::kTime}};
const DeclaredMetric kP90{{"step_time_p90_s", "s", "time that 90 % of the steps with noise keep",
                           "training, inference, layers", Follows::kTime}};
const DeclaredMetric kP99{{"step_time_p99_s", "s", "time that 99 % of the steps with noise keep",
                           "training, inference, layers", Follows::kTime}};

struct StepQuantile {
  double share;
  const DeclaredMetric& metric;
};
const StepQuantile kStepQuantiles[] = {{0.1, kP10}, {0.5, kP50}, {0.9, kP90}, {0.99, kP99}};

/// The least of sorted values that a share of them does not exceed.
Picoseconds step_quantile(const std::vector<Picoseconds>& sorted, double share) {
  const double place = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(1.0, place)) - 1];
}

/// The step that stands in the middle of `times`, the first of equal ones.
int middle_of(const std::vector<Picoseconds>& times) {
  std::vector<Picoseconds> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const auto middle = std::find(times.begin(), times.end(), step_quantile(sorted, 0.5));
  return static_cast<int>(middle - times.begin());
}

}  // namespace

RankSteps replay_ranks(const StepExperiment& experiment, const Program& program,
                       const PricedProgram& priced, const MachineNetwork& network,
                       ReplayOptions options) {
  const RankPrices prices = rank_prices(program, priced, network);
  RankNoise noise(experiment.noise,
                  rank_layout(experiment.machine().system(), experiment.machine().nodes()),
                  program.ranks);
  options.images = &prices.images;
  if (experiment.noise.any()) options.variation = &noise;
  const int steps = experiment.noise.kernels > 0 ? experiment.steps : 1;
  Timeline* const timeline = std::exchange(options.timeline, nullptr);
  RankSteps all;
  const auto replayed = [&](int step) {
    noise.set_step(step);
    return replay(program, prices.costs, options);
  };
  if (steps > 1) {
    for (int step = 0; step < steps; ++step) all.times.push_back(replayed(step).end);
  }
  options.timeline = timeline;
  all.middle = replayed(steps > 1 ? middle_of(all.times) : 0);
  all.times.resize(static_cast<std::size_t>(experiment.steps), all.middle.end);
  return all;
}

std::vector<double> rank_figures(const StepExperiment& experiment) {
  if (!experiment.unfolds()) return {};
  const NoiseConfig& noise = experiment.noise;
  std::vector<double> figures = {static_cast<double>(experiment.steps),
                                 static_cast<double>(noise.seed),
                                 noise.kernels,
                                 noise.ranks,
                                 noise.stragglers.fraction,
                                 noise.stragglers.slowdown};
  for (const int rank : noise.stragglers.ranks) figures.push_back(rank);
  return figures;
}

void report_ranks(const StepExperiment& experiment, const RankSteps& steps, RunRecord& record) {
  if (steps.times.empty()) return;
  const bool noisy = experiment.noise.any();
  add_label(record, kFolding, noisy ? "off: noise differs by rank" : "off: as asked for");
  add_metric(record, kReplayedRanks, experiment.ranks());
  add_metric(record, kReplayedOperators, static_cast<double>(steps.middle.operators));
  if (!noisy) return;
  std::vector<Picoseconds> sorted = steps.times;
  std::sort(sorted.begin(), sorted.end());
  const auto seconds = [](Picoseconds time) { return to_seconds(time).base(); };
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0,
                                     [&](double s, Picoseconds t) { return s + seconds(t); });
  add_metric(record, kMeanStep, sum / static_cast<double>(sorted.size()));
  for (const auto& [share, metric] : kStepQuantiles)
    add_metric(record, metric, seconds(step_quantile(sorted, share)));
  add_metric(record, kWorstStep, seconds(sorted.back()));
}

}  // namespace orrery
