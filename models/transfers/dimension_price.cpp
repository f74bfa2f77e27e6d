// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/dimension_price.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "models/collectives/dimension_phases.h"

namespace orrery {
namespace {

/// A chunk that comes to a phase.
struct Arrival {
  Seconds time;
  int chunk = 0;
  std::size_t phase = 0;

  bool operator>(const Arrival& other) const {
    return std::tuple(time.base(), chunk) > std::tuple(other.time.base(), other.chunk);
  }
};

}  // namespace

PipelineTimes pipeline_times(std::span<const PhaseTime> phases, std::size_t dimensions,
                             int chunks) {
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  for (int chunk = 0; chunk < chunks; ++chunk) arrivals.push({{}, chunk, 0});
  std::vector<Seconds> idle_from(dimensions);
  PipelineTimes times;
  times.busy.resize(dimensions);
  while (!arrivals.empty()) {
    const Arrival arrival = arrivals.top();
    arrivals.pop();
    const PhaseTime& phase = phases[arrival.phase];
    Seconds& idle = idle_from[phase.dimension];
    idle = std::max(idle, arrival.time) + phase.time;
    times.busy[phase.dimension] += phase.time;
    times.end = std::max(times.end, idle);
    if (arrival.phase + 1 < phases.size()) arrivals.push({idle, arrival.chunk, arrival.phase + 1});
  }
  return times;
}

PipelineTimes DimensionPrice::times(const Collective& collective) const {
  const int chunks = grid_.network().chunks;
  std::vector<PhaseTime> phases;
  for (const DimensionPhase& phase : dimension_phases(collective)) {
    const DimensionConfig& line = *collective.dimensions[phase.dimension];
    const Bytes bytes = collective.bytes * (phase.share / chunks);
    const Seconds gather = latency_ * line_steps(line) + line.latency.value * line_links(line) +
                           line_bytes(line, bytes) / (line.bandwidth.value * efficiency_);
    Seconds scatter = gather;
    if (line.sum_rate.value > BytesPerSecond(0))
      scatter += bytes * (1 - 1.0 / line.size) / line.sum_rate.value;
    PhaseTime& told = phases.emplace_back(PhaseTime{phase.dimension, grid_.network().start.value});
    if (phase.scatters()) told.time += scatter;
    if (phase.gathers()) told.time += gather;
  }
  return pipeline_times(phases, collective.dimensions.size(), chunks);
}

Seconds DimensionPrice::add(const Collective& collective) {
  const PipelineTimes pipeline = times(collective);
  const std::vector<int> filled = grid_.filled_by(collective.group);
  for (std::size_t i = 0; i < filled.size(); ++i) {
    Seconds& busy = busy_[static_cast<std::size_t>(filled[i])];
    busy = std::max(busy, pipeline.busy[i]);
  }
  return pipeline.end;
}

void DimensionPrice::apply(Seconds time, const std::vector<BytesPerSecond>& whole,
                           const std::vector<BytesPerSecond>& capacities,
                           PricedTransfer& priced) const {
  std::vector<Seconds> carries(busy_.size());  // the busiest link of each dimension
  const auto dimension = [&](const LinkLoad& load) { return index(grid_.dimension_of(load.link)); };
  for (const LinkLoad& load : priced.cost.loads) {
    Seconds& most = carries[dimension(load)];
    most = std::max(most, Bytes(load.payload) / whole[load.link]);
  }
  Seconds slowest;
  priced.cost.loads.change([&](LinkLoad& load) {
    load.bytes = load.payload * (busy_[dimension(load)] / carries[dimension(load)]);
    const Seconds takes = Bytes(load.bytes) / capacities[load.link];
    if (takes <= slowest) return;
    slowest = takes;
    priced.bottleneck = load.link;
  });
  const Seconds longest = *std::max_element(busy_.begin(), busy_.end());
  priced.cost.latency = to_picoseconds(std::max(Seconds(0), time - longest));
  priced.isolated_time = std::max(Seconds(0), time - longest) + slowest;
}

}  // namespace orrery
