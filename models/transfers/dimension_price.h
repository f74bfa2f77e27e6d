// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "models/collectives/algorithm.h"
#include "models/topologies/dimensions.h"
#include "sim/graph/topology.h"
#include "sim/machine/network.h"

namespace orrery {

/// When the chunks of a collective have gone through all of its phases, and how long each dimension
/// worked on them.
struct PipelineTimes {
  Seconds end;
  std::vector<Seconds> busy;  ///< time at work, by dimension
};

/// One phase of a chunk: it has its dimension for itself for that long.
struct PhaseTime {
  std::size_t dimension = 0;
  Seconds time;
};

/// Chunks that go through phases in dimensions which take one at a time, in the order in which they
/// come; of those that come at once the first of the buffer. All are there from the start.
PipelineTimes pipeline_times(std::span<const PhaseTime> phases, std::size_t dimensions, int chunks);

/// Prices a transfer whose collectives go through the dimensions of a network (algorithm
/// `dimensions`). A chunk of S/chunks takes in a phase
///
///   start + steps x latency + links of all steps x their latency
///         + bytes on the busiest link / rate + bytes that are summed / sum_rate
///
/// and the collective what pipeline_times() makes of these. Links of a dimension are taken for as
/// long as it works on chunks, so that collectives at the same time take turns in it.
class DimensionPrice {
 public:
  DimensionPrice(const DimensionGrid& grid, Seconds latency, double efficiency)
      : grid_(grid), latency_(latency), efficiency_(efficiency), busy_(grid.count()) {}

  /// Adds a group of the transfer and tells when it ends.
  Seconds add(const Collective& collective);
  /// Lets the links of each dimension take as long as it is busy, and the transfer `time` in all.
  /// @param whole capacities without faults
  void apply(Seconds time, const std::vector<BytesPerSecond>& whole,
             const std::vector<BytesPerSecond>& capacities, PricedTransfer& priced) const;

 private:
  PipelineTimes times(const Collective& collective) const;

  const DimensionGrid& grid_;
  Seconds latency_;
  double efficiency_;
  std::vector<Seconds> busy_;  ///< longest of a group, by dimension of the network
};

}  // namespace orrery
