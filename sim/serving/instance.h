// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/serving/iteration.h"
#include "sim/serving/kv_pool.h"
#include "sim/serving/router.h"
#include "sim/serving/scheduler.h"
#include "sim/serving/serving_log.h"
#include "sim/serving/speculation.h"
#include "sim/units/units.h"

namespace orrery {

/// What an instance does with requests: their prompts, the rest of their answers, or both.
enum class InstanceRole : std::uint8_t { kBoth, kPrefill, kDecode };

/// Data parallel ranks that run iterations together, each with requests, a cache and a scheduler of
/// its own. Nobody begins the next iteration before the slowest has ended this one.
class Instance final : public KeptPrefixes {
 public:
  /// A request that leaves after its first token, and the rank that has its cache.
  struct Leaving {
    RequestState state;
    std::size_t rank = 0;
  };

  /// @param engine outlives it
  /// @param kv rules of the cache of each rank
  /// @param pricer of all instances like this one; outlives it
  /// @param host work of the host; none: that of the engine
  Instance(const SchedulerConfig& engine, const KvRules& kv, int ranks, IterationPricer& pricer,
           InstanceRole role = InstanceRole::kBoth, const Speculation& speculation = {},
           const std::optional<HostCosts>& host = std::nullopt);

  /// A request joins those that wait, at the rank with the fewest.
  /// @throws std::overflow_error for one that fits in no cache
  void add(Request request);
  bool busy() const { return end_ > 0; }
  /// Begins an iteration. @return when it ends; 0 where there is nothing to do
  /// @throws std::overflow_error where requests wait that the engine can never run
  Picoseconds begin(Picoseconds now);
  /// Ends the iteration: tokens are there, and requests that are done leave for `finished`. Of an
  /// instance of prompts those with answers that go on are in `leaving`; their caches stay.
  void end(ServingLog& log, std::vector<RequestState>& finished, std::vector<Leaving>& leaving);

  /// Counts a request that another instance has begun and that comes here.
  void expect(const Request& request);
  /// Makes room for an expected one, at the rank with the fewest: its blocks, and what it shares
  /// with others here. @return the rank; nothing where none has room
  /// @throws std::overflow_error for one that fits in no cache
  std::optional<std::size_t> make_room(RequestState& state);
  /// The cache of an expected one is there: it waits for its next token.
  void receive(RequestState state, std::size_t rank, Picoseconds now);
  /// The cache of one that has left is no longer needed.
  void let_go(Leaving& left);

  InstanceRole role() const { return role_; }
  /// What a rank does in the iteration under way.
  const Batch& batch(std::size_t rank) const { return ranks_[rank].batch; }
  const Queue& queue(std::size_t rank) const { return ranks_[rank].queue; }
  const KvPool& pool(std::size_t rank) const { return ranks_[rank].pool; }
  std::size_t ranks() const { return ranks_.size(); }
  const InstanceView& view() const { return view_; }
  /// At the rank that has most of it.
  std::int64_t kept(const Request& request) const override;
  Picoseconds request_delay() const { return request_delay_; }
  std::int64_t iterations() const { return iterations_; }
  /// Time with an iteration under way.
  Picoseconds busy_time() const { return busy_time_; }
  /// Joules of its devices above idle.
  double energy() const { return energy_; }
  /// Blocks that requests of all ranks hold.
  std::int64_t used_blocks() const;

 private:
  struct Rank {
    Rank(const SchedulerConfig& engine, const KvRules& kv) : pool(kv), scheduler(engine.make()) {}
    Queue queue;
    KvPool pool;
    std::unique_ptr<Scheduler> scheduler;
    Batch batch;
    std::size_t expected = 0;  ///< requests whose caches are on their way to it
  };

  void end(Rank& rank, ServingLog& log, std::vector<RequestState>& finished,
           std::vector<Leaving>& leaving);
  std::vector<std::size_t> by_load() const;
  void require_room(const Request& request) const;
  void admit(Rank& rank);
  void look();

  const SchedulerConfig& engine_;
  HostCosts host_;
  IterationPricer& pricer_;
  Picoseconds request_delay_;
  InstanceRole role_;
  Speculation speculation_;
  std::vector<Rank> ranks_;
  InstanceView view_;
  std::int64_t tokens_ = 0;          ///< tokens of the prompts of all that it has
  std::int64_t expected_ = 0;        ///< requests that come from other instances
  std::int64_t held_ = 0;            ///< requests that have left, and whose caches have not
  Picoseconds begin_ = 0, end_ = 0;  ///< times of the iteration under way; end_ 0: none
  Picoseconds last_end_ = 0;         ///< end of the iteration before it
  Picoseconds busy_time_ = 0;
  double energy_ = 0;
  std::int64_t iterations_ = 0;
};

}  // namespace orrery
