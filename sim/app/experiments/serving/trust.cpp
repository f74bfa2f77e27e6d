// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/trust.h"

#include <algorithm>

#include "sim/machine/draws.h"

namespace orrery {
namespace {

/// Iterations of all replicas of a group, which follow each other among the instances.
IterationKinds kinds_of(const std::vector<Instance>& instances, std::size_t first, int replicas) {
  IterationKinds all;
  for (std::size_t i = first; i < first + static_cast<std::size_t>(replicas); ++i)
    all.add(instances[i].iteration_kinds());
  return all;
}

}  // namespace

ServingTrust::ServingTrust(const ServingFleet& fleet, const std::vector<ServingGroup>& groups,
                           const std::vector<Instance>& instances, std::int64_t seed) {
  const std::vector<double> beyond = beyond_graphs(fleet.model().has_moe(), seed);
  std::size_t first = 0;
  std::vector<Chunk> chunks;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const IterationKinds kinds = kinds_of(instances, first, groups[group].replicas);
    first += static_cast<std::size_t>(groups[group].replicas);
    for (auto& bound : bounds_) bound.emplace_back();
    const auto look = [&](const IterationMeans& means, double Slowness::*figure) {
      if (means.seconds() <= 0) return;
      const StepTrust trust = fleet.trust(group, means.shape(chunks), seed);
      add(means, trust);
      const auto [p10, p90] = p10_p90(times(trust.factors, beyond));
      bounds_[0].back().*figure = p10;
      bounds_[1].back().*figure = p90;
    };
    look(kinds.decodes, &Slowness::decodes);
    look(kinds.prompts, &Slowness::prompts);
  }
}

void ServingTrust::add(const IterationMeans& means, const StepTrust& trust) {
  double all = 0;
  for (const auto& [provenance, seconds] : trust.seconds) all += seconds;
  for (const auto& [provenance, seconds] : trust.seconds)
    time_.add(provenance, means.seconds() * seconds / all);
}

void add_bounds(RunRecord& record, const std::array<RunRecord, 2>& bounds) {
  for (Metric& metric : record.metrics) {
    double least = metric.value, most = metric.value;
    for (const RunRecord& bound : bounds) {
      const Metric* other = bound.find(metric.name);
      if (other == nullptr) continue;
      least = std::min(least, other->value);
      most = std::max(most, other->value);
    }
    if (least < most) metric.interval = {least, most};
  }
}

}  // namespace orrery
