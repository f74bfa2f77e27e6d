// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/serving/iteration.h"
#include "sim/serving/kv_pool.h"
#include "sim/serving/router.h"
#include "sim/serving/scheduler.h"
#include "sim/serving/serving_log.h"

namespace orrery {

/// Data parallel ranks that run iterations together, each with requests, a cache and a scheduler of
/// its own. Nobody begins the next iteration before the slowest has ended this one.
class Instance {
 public:
  /// @param kv rules of the cache of each rank
  /// @param pricer of all instances like this one; outlives it
  Instance(const SchedulerConfig& engine, const KvRules& kv, int ranks, IterationPricer& pricer);

  /// A request joins those that wait, at the rank with the fewest.
  /// @throws std::overflow_error for one that fits in no cache
  void add(Request request);
  bool busy() const { return end_ > 0; }
  /// Begins an iteration. @return when it ends; 0 where there is nothing to do
  /// @throws std::overflow_error where requests wait that the engine can never run
  Picoseconds begin(Picoseconds now);
  /// Ends the iteration: tokens are there, and requests that are done leave for `finished`.
  void end(ServingLog& log, std::vector<RequestState>& finished);

  const InstanceView& view() const { return view_; }
  Picoseconds request_delay() const { return request_delay_; }
  std::int64_t iterations() const { return iterations_; }
  /// Time with an iteration under way.
  Picoseconds busy_time() const { return busy_time_; }
  /// Blocks that requests of all ranks hold.
  std::int64_t used_blocks() const;

 private:
  struct Rank {
    Rank(const SchedulerConfig& engine, const KvRules& kv) : pool(kv), scheduler(engine.make()) {}
    Queue queue;
    KvPool pool;
    std::unique_ptr<Scheduler> scheduler;
    Batch batch;
  };

  void end(Rank& rank, ServingLog& log, std::vector<RequestState>& finished);
  void look();

  HostCosts host_;
  IterationPricer& pricer_;
  Picoseconds request_delay_;
  std::vector<Rank> ranks_;
  InstanceView view_;
  Picoseconds begin_ = 0, end_ = 0;  ///< times of the iteration under way; end_ 0: none
  Picoseconds last_end_ = 0;         ///< end of the iteration before it
  Picoseconds busy_time_ = 0;
  std::int64_t iterations_ = 0;
};

}  // namespace orrery
