// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sim/app/experiments/serving/config.h"
#include "sim/results/run_record.h"
#include "sim/serving/serving_log.h"
#include "sim/serving/serving_observer.h"
#include "sim/trace/timeline.h"

namespace orrery {

/// Looks at queues and caches of instances at the begin of iterations: at all of them until there
/// are too many, then at every second, and so on.
class FleetSamples final : public ServingObserver {
 public:
  explicit FleetSamples(std::size_t instances) : of_(instances) {}

  void begun(std::size_t index, const Instance& instance, const Instance::Begun& begun) override;
  void moved(std::int64_t request, std::size_t from, std::size_t to, Picoseconds begin,
             Picoseconds end) override;

  /// In order of time.
  ResultRows rows() const;

 private:
  struct Sample {
    Picoseconds time = 0;
    double waiting = 0, running = 0, used = 0;
  };
  struct OfInstance {
    std::vector<Sample> kept;
    std::uint64_t seen = 0, stride = 1;
  };

  std::vector<OfInstance> of_;
};

/// Draws a run: a process an instance with a thread a rank, whose spans are iterations, and
/// counters of its requests and its cache; caches on their way in a process of their own.
class ServingTimeline final : public ServingObserver {
 public:
  /// @param groups whose replicas the instances are, in their order
  ServingTimeline(Timeline& timeline, const std::vector<ServingGroup>& groups);

  void begun(std::size_t index, const Instance& instance, const Instance::Begun& begun) override;
  void moved(std::int64_t request, std::size_t from, std::size_t to, Picoseconds begin,
             Picoseconds end) override;

 private:
  Timeline& timeline_;
  std::vector<std::string> names_;      ///< names of instances
  std::vector<Picoseconds> lane_ends_;  ///< ends of the last transfer of each lane
};

/// One row for each answered request, in their order.
ResultRows request_rows(const ServingLog& log);

}  // namespace orrery
