// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/rank_replay.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "sim/app/experiments/core/simulate.h"
#include "sim/graph/images.h"

namespace orrery {
namespace {

const DeclaredMetric kReplayedRanks =
    step_metric("replayed_ranks", "1", "ranks that were replayed, each on its own");
const DeclaredMetric kReplayedOperators =
    step_metric("replayed_operators", "1", "operators of all ranks of one step, each replayed");
const DeclaredMetric kFolding = step_metric("folding", "", "why ranks were replayed one by one");
const DeclaredMetric kMeanStep =
    step_metric("step_time_mean_s", "s", "mean time of the steps with noise", Follows::kTime);
const DeclaredMetric kWorstStep =
    step_metric("step_time_worst_s", "s", "time of the slowest step with noise", Follows::kTime);

/// The time that a share of the steps keeps.
struct StepQuantile {
  double share;
  DeclaredMetric metric;

  StepQuantile(int percent, const std::string& of_steps)
      : share(percent / 100.0),
        metric(step_metric(fmt::format("step_time_p{}_s", percent), "s",
                           "time that " + of_steps + " of the steps with noise keep",
                           Follows::kTime)) {}
};
const StepQuantile kStepQuantiles[] = {{10, "10 %"}, {50, "half"}, {90, "90 %"}, {99, "99 %"}};

/// The least of sorted values that a share of them does not exceed.
Picoseconds step_quantile(const std::vector<Picoseconds>& sorted, double share) {
  const double place = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(1.0, place)) - 1];
}

/// The step that stands in the middle of `times`, the first of equal ones.
int middle_of(const std::vector<Picoseconds>& times) {
  std::vector<Picoseconds> sorted = times;
  std::ranges::sort(sorted);
  const auto middle = std::ranges::find(times, step_quantile(sorted, 0.5));
  return static_cast<int>(middle - times.begin());
}

/// Prices of a program whose ranks are replayed one by one. An image of a transfer takes its own
/// part of the links; algorithm, protocol, latency and what it takes of devices are those of all
/// images together.
struct RankPrices {
  Images images;
  Costs costs;  ///< costs of transfers by image
};
RankPrices rank_prices(const Program& program, const PricedProgram& priced,
                       const MachineNetwork& network) {
  RankPrices prices{Images(program), {}};
  Costs& costs = prices.costs;
  costs.kernels = priced.costs.kernels;
  costs.enqueue = priced.costs.enqueue;
  for (TransferId id = 0; id < program.transfers.size(); ++id) {
    const TransferCost& whole = priced.costs.transfers[id];
    for (LinkLoads& loads : network.start().image_loads(program.transfers[id], prices.images.at(id),
                                                        priced.transfers[id])) {
      costs.transfers.push_back({whole.latency, std::move(loads), whole.rate_limit, whole.device});
    }
  }
  network.start().fill_links(costs);
  network.add_link_events(program, priced.transfers, costs, &prices.images);
  return prices;
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
  std::ranges::sort(sorted);
  const auto seconds = [](Picoseconds time) { return to_seconds(time).base(); };
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0,
                                     [&](double s, Picoseconds t) { return s + seconds(t); });
  add_metric(record, kMeanStep, sum / static_cast<double>(sorted.size()));
  for (const auto& [share, metric] : kStepQuantiles)
    add_metric(record, metric, seconds(step_quantile(sorted, share)));
  add_metric(record, kWorstStep, seconds(sorted.back()));
}

}  // namespace orrery
