// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/dimension_price.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <tuple>

#include "models/collectives/dimension_phases.h"
#include "models/topologies/dimensions.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

/// A chunk that leaves its phase.
struct PhaseEnd {
  Seconds time;
  int chunk = 0;
  std::size_t phase = 0;

  bool operator>(const PhaseEnd& other) const {
    return std::tuple(time.base(), chunk) > std::tuple(other.time.base(), other.chunk);
  }
};

/// The dimensions at work. Chunks wait in the order in which they come.
class Pipeline {
 public:
  Pipeline(std::span<const PhaseTime> phases, std::size_t dimensions)
      : phases_(phases), waiting_(dimensions), works_(dimensions) {
    times_.busy.resize(dimensions);
  }

  void come(int chunk, std::size_t phase) {
    if (phase < phases_.size()) waiting_[phases_[phase].dimension].push_back({{}, chunk, phase});
  }
  /// Every dimension that does nothing begins with the first that waits there.
  void begin(Seconds now) {
    for (std::size_t d = 0; d < waiting_.size(); ++d) {
      if (works_[d] || waiting_[d].empty()) continue;
      PhaseEnd next = waiting_[d].front();
      waiting_[d].pop_front();
      next.time = now + phases_[next.phase].time;
      times_.busy[d] += phases_[next.phase].time;
      works_[d] = true;
      ends_.push(next);
    }
  }
  PipelineTimes run() {
    begin({});
    while (!ends_.empty()) {
      const Seconds now = ends_.top().time;
      while (!ends_.empty() && !(ends_.top().time > now)) {
        const PhaseEnd done = ends_.top();
        ends_.pop();
        works_[phases_[done.phase].dimension] = false;
        come(done.chunk, done.phase + 1);
      }
      times_.end = now;
      begin(now);
    }
    return std::move(times_);
  }

 private:
  std::span<const PhaseTime> phases_;
  std::vector<std::deque<PhaseEnd>> waiting_;  ///< chunks by dimension
  std::vector<bool> works_;
  std::priority_queue<PhaseEnd, std::vector<PhaseEnd>, std::greater<>> ends_;
  PipelineTimes times_;
};

}  // namespace

PipelineTimes pipeline_times(std::span<const PhaseTime> phases, std::size_t dimensions,
                             int chunks) {
  Pipeline pipeline(phases, dimensions);
  for (int chunk = 0; chunk < chunks; ++chunk) pipeline.come(chunk, 0);
  return pipeline.run();
}

DimensionPrice::DimensionPrice(const NetworkDimensionsConfig& network, const ScaleUpConfig& fabric)
    : chunks_(network.chunks),
      each_dimension_(network.all_reduce == AllReduceOrder::kEachDimension),
      start_(network.start.value),
      latency_(fabric.latency.value),
      efficiency_(fabric.efficiency.value) {}

Seconds DimensionPrice::phase_time(const Collective& collective, std::size_t dimension, Bytes bytes,
                                   bool scatters) const {
  const DimensionConfig& line = *collective.dimensions[dimension];
  Seconds time = latency_ * line_steps(line) + line.latency.value * line_links(line) +
                 line_bytes(line, bytes) / (line.bandwidth.value * efficiency_);
  if (scatters && line.sum_rate.value > BytesPerSecond(0))
    time += bytes * (1 - 1.0 / line.size) / line.sum_rate.value;
  return time;
}

PipelineTimes DimensionPrice::times(const Collective& collective) const {
  std::vector<PhaseTime> phases;
  for (const DimensionPhase& phase : dimension_phases(collective)) {
    const Bytes bytes = collective.bytes * (phase.share / chunks_);
    PhaseTime& told = phases.emplace_back(PhaseTime{phase.dimension, start_});
    if (phase.scatters) told.time += phase_time(collective, phase.dimension, bytes, true);
    if (phase.gathers) told.time += phase_time(collective, phase.dimension, bytes, false);
  }
  return pipeline_times(phases, collective.dimensions.size(), chunks_);
}

DimensionTurns::DimensionTurns(const DimensionPrice& price, const DimensionGrid& grid)
    : price_(price), grid_(grid), busy_(grid.count()) {}

Seconds DimensionTurns::add(const Collective& collective) {
  const PipelineTimes times = price_.times(collective);
  const std::vector<int> filled = grid_.filled_by(collective.group);
  for (std::size_t i = 0; i < filled.size(); ++i) {
    Seconds& busy = busy_[static_cast<std::size_t>(filled[i])];
    busy = std::max(busy, times.busy[i]);
  }
  return times.end;
}

void DimensionTurns::apply(Seconds time, const std::vector<BytesPerSecond>& whole,
                           const std::vector<BytesPerSecond>& capacities,
                           PricedTransfer& priced) const {
  std::vector<Seconds> carries(grid_.count());  // the busiest link of each dimension
  const auto dimension = [&](const LinkLoad& load) {
    return static_cast<std::size_t>(grid_.dimension_of(load.link));
  };
  for (const LinkLoad& load : priced.cost.loads) {
    Seconds& most = carries[dimension(load)];
    most = std::max(most, Bytes(load.payload) / whole[load.link]);
  }
  LinkLoads loads;
  Seconds slowest;
  for (const LinkLoad& load : priced.cost.loads) {
    const Seconds busy = busy_[dimension(load)];
    const double taken = load.payload * (busy / carries[dimension(load)]);
    loads.push_back({load.link, taken, load.payload});
    const Seconds takes = Bytes(taken) / capacities[load.link];
    if (takes <= slowest) continue;
    slowest = takes;
    priced.bottleneck = load.link;
  }
  const Seconds longest = *std::max_element(busy_.begin(), busy_.end());
  priced.cost.loads = std::move(loads);
  priced.cost.latency = to_picoseconds(std::max(Seconds(0), time - longest));
  priced.isolated_time = std::max(Seconds(0), time - longest) + slowest;
}

}  // namespace orrery
