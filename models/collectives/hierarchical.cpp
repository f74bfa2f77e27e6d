// SPDX-License-Identifier: Apache-2.0
// Two levels: inside every system all at once, between systems along the rails, where the i-th rank
// of every system meets. Every NIC carries the same. Of a buffer S over N systems of m ranks
//
//                      inside, each pair   each NIC           steps
//   all_reduce              2 S/m          2(N-1)/N S/m       1, 2(N-1), 1: reduce-scatter, ring
//                                                             all-reduce on the rails, all-gather
//   all_gather                S/m           (N-1)/N S/m       N-1 on the rails, then 1 inside
//   reduce_scatter            S/m           (N-1)/N S/m       1 inside, then N-1 on the rails
//   all_to_all              N S/n           (N-1)/N S         1 inside, to the rank on the rail of
//                                                             the destination, then 1 on the rails
//
// The all_to_all is what NCCL calls PXN (NVIDIA developer blog, "Doubling all2all performance with
// NCCL 2.12"); the all_reduce is that of Horovod's and BlueConnect's hierarchy (Cho et al.,
// "BlueConnect", MLSys 2019).
#include <memory>

#include "models/collectives/channels.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

/// Members by system and rail, for the steps of one schedule.
class Rails {
 public:
  Rails(const Channels& channels, int size) : channels_(channels), size_(size) {}

  int systems() const { return channels_.systems(); }
  int count() const { return channels_.part_size(0); }
  int member(int system, int rail) const {
    return channels_.part(system % systems())[static_cast<std::size_t>(rail)];
  }
  /// The chunk of an all_to_all from one member to another.
  ChunkRange between(int from, int to) const { return {from * size_ + to, 1}; }

 private:
  const Channels& channels_;
  int size_;
};

/// Calls `visit(system, rail, other)` for two different rails of a system.
template <class Visit>
void each_pair_inside(const Rails& rails, Visit visit) {
  for (int system = 0; system < rails.systems(); ++system) {
    for (int rail = 0; rail < rails.count(); ++rail) {
      for (int other = 0; other < rails.count(); ++other) {
        if (rail != other) visit(system, rail, other);
      }
    }
  }
}

/// Everyone sends what belongs to a rail to the member on it.
void scatter_inside(const Rails& rails, Schedule& schedule) {
  each_pair_inside(rails, [&](int system, int rail, int other) {
    for (int owner = 0; owner < rails.systems(); ++owner) {
      schedule.reduce(0, rails.member(system, rail), rails.member(system, other),
                      {rails.member(owner, other), 1});
    }
  });
}

void gather_inside(const Rails& rails, int step, Schedule& schedule) {
  each_pair_inside(rails, [&](int system, int rail, int other) {
    for (int owner = 0; owner < rails.systems(); ++owner) {
      schedule.copy(step, rails.member(system, rail), rails.member(system, other),
                    {rails.member(owner, rail), 1});
    }
  });
}

/// One lap of the rings on the rails.
void lap(const Rails& rails, int first_step, ChunkOp op, Schedule& schedule) {
  const int n = rails.systems();
  const int behind = op == ChunkOp::kReduce ? 1 : 0;  // the chunk of whom starts at a member
  for (int rail = 0; rail < rails.count(); ++rail) {
    for (int system = 0; system < n; ++system) {
      for (int i = 0; i < n - 1; ++i) {
        const int owner = rails.member(system - behind - i + n, rail);
        schedule.messages.push_back({first_step + i,
                                     rails.member(system, rail),
                                     rails.member(system + 1, rail),
                                     {owner, 1},
                                     op});
      }
    }
  }
}

void all_to_all(const Rails& rails, Schedule& schedule) {
  each_pair_inside(rails, [&](int system, int rail, int other) {
    const int from = rails.member(system, rail), to = rails.member(system, other);
    for (int target = 0; target < rails.systems(); ++target)
      schedule.copy(0, from, to, rails.between(from, rails.member(target, other)));
  });
  for (int system = 0; system < rails.systems(); ++system) {
    for (int target = 0; target < rails.systems(); ++target) {
      if (target == system) continue;
      for (int rail = 0; rail < rails.count(); ++rail) {
        const int from = rails.member(system, rail), to = rails.member(target, rail);
        for (int origin = 0; origin < rails.count(); ++origin)
          schedule.copy(1, from, to, rails.between(rails.member(system, origin), to));
      }
    }
  }
}

class HierarchicalAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    using enum TransferKind;
    if (!collective.is_any({kAllReduce, kAllGather, kReduceScatter, kAllToAll}) ||
        !collective.spans_systems() || !collective.pair_bytes.empty())
      return false;
    const Channels channels(collective);
    return channels.even() && channels.part_size(0) > 1;
  }
  bool automatic() const override { return false; }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Channels channels(collective);
    const RailGroups groups(collective, channels);
    const int systems = channels.systems(), rails = channels.part_size(0);
    if (collective.kind == TransferKind::kAllToAll) {
      const Bytes part = collective.bytes / collective.size();
      for (int s = 0; s < systems; ++s) sink.exchange(groups.system(s), part * systems);
      for (int rail = 0; rail < rails; ++rail) sink.exchange(groups.rail(rail), part * rails);
      return {.scale_up = 1, .scale_out = 1};
    }
    const int passes = collective.kind == TransferKind::kAllReduce ? 2 : 1;
    const Bytes part = collective.bytes * (static_cast<double>(passes) / rails);
    for (int s = 0; s < systems; ++s) sink.exchange(groups.system(s), part);
    const Bytes hop = part * (static_cast<double>(systems - 1) / systems);
    for (int rail = 0; rail < rails; ++rail) {
      const std::span<const int> ring = groups.rail(rail);
      for (std::size_t i = 0; i < ring.size(); ++i)
        sink.add(ring[i], ring[(i + 1) % ring.size()], hop);
    }
    return {.scale_up = passes, .scale_out = passes * (systems - 1)};
  }

  Schedule schedule(const Collective& collective) const override {
    const Channels channels(collective);
    const Rails rails(channels, collective.size());
    Schedule schedule{.chunks = collective.size()};
    if (collective.kind == TransferKind::kAllToAll) {
      schedule.chunks *= collective.size();
      all_to_all(rails, schedule);
      return schedule;
    }
    int step = 0;
    if (collective.kind != TransferKind::kAllGather) {
      scatter_inside(rails, schedule);
      lap(rails, 1, ChunkOp::kReduce, schedule);
      step = rails.systems();
    }
    if (collective.kind != TransferKind::kReduceScatter) {
      lap(rails, step, ChunkOp::kCopy, schedule);
      gather_inside(rails, step + rails.systems() - 1, schedule);
    }
    return schedule;
  }
};

const AlgorithmRegistry::Register registered_hierarchical(
    "hierarchical", "two levels: inside every system at once, between systems along the rails",
    std::make_shared<HierarchicalAlgorithm>());

}  // namespace
}  // namespace orrery
