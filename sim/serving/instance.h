// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/serving/adapter_slots.h"
#include "sim/serving/iteration.h"
#include "sim/serving/iteration_means.h"
#include "sim/serving/kv_pool.h"
#include "sim/serving/router.h"
#include "sim/serving/scheduler.h"
#include "sim/serving/serving_log.h"
#include "sim/serving/speculation.h"
#include "sim/units/units.h"

namespace orrery {

/// What an instance does with requests: their prompts, the rest of their answers, or both.
enum class InstanceRole : std::uint8_t { kBoth, kPrefill, kDecode };

/// What instances of one kind have in common.
struct InstanceRules {
  KvRules kv;                  ///< rules of the cache of each rank
  int ranks = 1;               ///< data parallel ranks
  AdapterRules adapters = {};  ///< slots for adapters of each rank
  int lanes = 1;               ///< batches in flight at a time: one a pipeline stage
  InstanceRole role = InstanceRole::kBoth;
  Speculation speculation = {};
  std::optional<HostCosts> host = std::nullopt;  ///< work of the host; none: that of the engine
  Slowness slowness = {};                        ///< how much longer than priced iterations take
};

/// Data parallel ranks that run iterations together, each with requests, a cache and a scheduler of
/// its own. Nobody begins the next iteration before the slowest has ended this one.
///
/// Where the host prepares a batch while devices run the one before, requests that come meanwhile
/// have missed it: they join the next one.
///
/// With pipeline stages an instance has as many batches in flight, each with requests of its own,
/// as virtual engines or micro-batches have them: a batch follows the one before it from stage to
/// stage, all of which take an equal part of its time.
class Instance final : public KeptPrefixes {
 public:
  /// Requests of one rank in one of the batches: lane * ranks + rank.
  using Slot = std::size_t;

  /// A request that leaves after its first token, and where its cache is.
  struct Leaving {
    RequestState state;
    Slot slot = 0;
  };

  /// An iteration that has begun.
  struct Begun {
    std::size_t lane = 0;
    Picoseconds begin = 0, end = 0;
  };

  /// @param engine outlives it
  /// @param pricer of all instances like this one; outlives it
  Instance(const SchedulerConfig& engine, IterationPricer& pricer, const InstanceRules& rules);

  /// Counts a request that is on its way: the host is still parsing it, or another instance has
  /// begun it and transfers its cache.
  void expect(const Request& request);
  /// An expected request joins those that wait, where there are the fewest.
  /// @throws std::overflow_error for one that fits in no cache
  void add(Request request, Picoseconds now);
  /// Whether no more iterations can begin.
  bool busy() const { return in_flight_ == flights_.size(); }
  /// Begins an iteration, if there is one to begin.
  /// @throws std::overflow_error where requests wait that the engine can never run
  std::optional<Begun> begin(Picoseconds now);
  /// Requests that an iteration has brought on, each list in the order of the batch.
  struct Ended {
    std::vector<Request> prefilled;      ///< requests with their first token
    std::vector<RequestState> finished;  ///< requests that are done
    /// Requests of a prefill instance that another one goes on with; their caches stay.
    std::vector<Leaving> leaving;
  };
  /// Ends the iteration of a lane. `ended` is filled anew.
  void end(std::size_t lane, ServingLog& log, Ended& ended);

  /// Makes room for an expected one, where there are the fewest: its blocks, and what it shares
  /// with others here. @return where; nothing where there is none
  /// @throws std::overflow_error for one that fits in no cache
  std::optional<Slot> make_room(RequestState& state);
  /// The cache of an expected one is there: it waits for its next token.
  void receive(RequestState state, Slot slot, Picoseconds now);
  /// The cache of one that has left is no longer needed.
  void let_go(Leaving& left);

  InstanceRole role() const { return role_; }
  Slot slot(std::size_t lane, std::size_t rank) const { return lane * ranks() + rank; }
  std::size_t rank_of(Slot slot) const { return slot % ranks(); }
  /// What is done there in the iteration under way.
  const Batch& batch(Slot slot) const { return slots_[slot].batch; }
  const Queue& queue(Slot slot) const { return slots_[slot].queue; }
  const KvPool& pool(std::size_t rank) const { return pools_[rank]; }
  std::size_t ranks() const { return pools_.size(); }
  std::size_t lanes() const { return flights_.size(); }
  const InstanceView& view() const { return view_; }
  /// At the rank that has most of it.
  std::int64_t kept(const Request& request) const override;
  Picoseconds request_delay() const { return request_delay_; }
  std::int64_t iterations() const { return iterations_; }
  /// Time with an iteration under way.
  Picoseconds busy_time() const { return busy_time_; }
  /// Joules of its devices above idle.
  double energy() const { return energy_; }
  /// Iterations of all ranks, by what devices take for them.
  const IterationKinds& iteration_kinds() const { return kinds_; }
  /// Tokens that were brought back from memory below that of the devices.
  std::int64_t loaded_tokens() const;
  /// Adapters that were brought into slots of all ranks.
  std::int64_t adapter_loads() const;
  /// Blocks that requests of all ranks hold.
  std::int64_t used_blocks() const;

 private:
  struct Place {
    explicit Place(const SchedulerConfig& engine) : scheduler(engine.make()) {}
    Queue queue;
    std::unique_ptr<Scheduler> scheduler;
    Batch batch;
    std::size_t expected = 0;  ///< requests whose caches are on their way to it
    /// Requests that have come and that no batch was put together since, with the time of that.
    std::deque<std::pair<Picoseconds, RequestState>> come;
  };
  /// The iteration of a lane under way; end 0: none.
  struct Flight {
    Picoseconds asked = 0;  ///< when it was put together
    Picoseconds begin = 0, end = 0;
    Picoseconds last_end = 0;  ///< end of the one before it
    std::unique_ptr<RanksPolicy> policy;
  };

  KvPool& pool_of(Slot slot) { return pools_[rank_of(slot)]; }
  /// What an iteration takes, and the most sequences of a rank.
  struct Work {
    Picoseconds device = 0;
    std::size_t sequences = 0;
    double kernels = 0;            ///< those that are launched one by one
    const Place* stuck = nullptr;  ///< where requests wait, and none runs
  };
  Work work(std::size_t lane);
  BatchShape shape(Place& place) const;
  void look_at_ranks(std::size_t lane);
  std::int64_t mean_tokens() const;
  void let_wait(std::size_t lane, Picoseconds until);
  bool has_come(std::size_t lane) const;
  void fly(std::size_t lane, const Work& work, Picoseconds now);
  void end_slot(Slot slot, ServingLog& log, Ended& ended);
  std::vector<Slot> by_load() const;
  void require_room(const Request& request) const;
  void admit(Slot slot);
  void look();

  const SchedulerConfig& engine_;
  HostCosts host_;
  IterationPricer& pricer_;
  Picoseconds request_delay_;
  InstanceRole role_;
  Speculation speculation_;
  Slowness slowness_;
  std::vector<KvPool> pools_;           ///< caches by rank
  std::vector<AdapterSlots> adapters_;  ///< slots for adapters by rank
  std::vector<Place> slots_;
  std::vector<Flight> flights_;     ///< iterations under way by lane
  std::vector<BatchShape> shapes_;  ///< shapes of the ranks of the batch that is put together
  std::size_t in_flight_ = 0, next_lane_ = 0;
  Picoseconds first_free_ = 0;  ///< when the first stage can take a batch
  Picoseconds last_out_ = 0;    ///< when the last stage gives the last batch back
  InstanceView view_;
  std::int64_t tokens_ = 0;      ///< tokens of the prompts of all that it has
  std::int64_t expected_ = 0;    ///< requests that are on their way
  std::int64_t unanswered_ = 0;  ///< requests that are here and have no token yet
  std::int64_t held_ = 0;        ///< requests that have left, and whose caches have not
  Picoseconds busy_time_ = 0, busy_until_ = 0;
  double energy_ = 0;
  IterationKinds kinds_;
  std::int64_t iterations_ = 0;
};

}  // namespace orrery
