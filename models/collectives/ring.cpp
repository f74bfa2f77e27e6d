// SPDX-License-Identifier: Apache-2.0
// Rings (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 2009). Of a buffer S over n ranks every link of the ring carries
//
//   all_gather, reduce_scatter   (n-1)/n S    in n-1 steps
//   all_reduce                  2(n-1)/n S    in 2(n-1) steps
//   broadcast                         S       in n-1 steps, pipelined; nothing into the root
//   reduce                            S       in n-1 steps, pipelined; nothing out of the root
//
// Between systems there is one ring per NIC, as NCCL builds them (Hu et al., "Demystifying NCCL",
// arXiv 2507.04786).
#include <algorithm>
#include <memory>
#include <vector>

#include "models/collectives/channels.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

/// The members in the order of one ring. Where a root is given, it comes first.
void ring_order(const Channels& channels, int channel, bool from_root, std::vector<int>& order) {
  order.clear();
  for (int system = 0; system < channels.systems(); ++system) {
    for (int i = 0; i < channels.part_size(system); ++i)
      order.push_back(channels.member(system, channel, i));
  }
  if (from_root) std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
}

StepCount step(const Collective& collective, const std::vector<int>& order, std::size_t hop) {
  const std::size_t n = order.size();
  return collective.step(order[hop % n], order[(hop + 1) % n]);
}

/// The `hops` hops from `first` on.
StepCount chain(const Collective& collective, const std::vector<int>& order, std::size_t first,
                std::size_t hops) {
  StepCount steps;
  for (std::size_t i = first; i < first + hops; ++i) steps = steps + step(collective, order, i);
  return steps;
}

/// The chain of `hops` consecutive hops with the most crossings between systems. A chunk waits for
/// the hop before, but not for other chunks, so the slowest chain is the latency: NCCL's own model
/// counts one crossing per system and lap.
StepCount slowest_chain(const Collective& collective, const std::vector<int>& order,
                        std::size_t hops) {
  StepCount steps = chain(collective, order, 0, hops);
  StepCount slowest = steps;
  for (std::size_t start = 1; start < order.size(); ++start) {
    steps = steps - step(collective, order, start - 1) + step(collective, order, start + hops - 1);
    slowest = longer(slowest, steps);
  }
  return slowest;
}

class RingAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    using enum TransferKind;
    return collective.is_any({kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce});
  }

  bool counts_links() const override { return true; }
  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Channels channels(collective);
    const auto n = collective.group.size();
    const bool rooted = has_root(collective);
    const double laps = collective.kind == TransferKind::kAllReduce ? 2 : 1;
    const double passes = rooted ? 1 : laps * static_cast<double>(n - 1) / static_cast<double>(n);
    const Bytes per_link = collective.bytes * (passes / channels.count());
    StepCount steps;
    std::vector<int> order;
    for (int channel = 0; channel < channels.count(); ++channel) {
      ring_order(channels, channel, rooted, order);
      const std::size_t first = first_hop(collective);
      for (std::size_t i = first; i < first + (rooted ? n - 1 : n); ++i) {
        sink.add(collective.rank(order[i % n]), collective.rank(order[(i + 1) % n]), per_link);
      }
      if (rooted) {
        steps = longer(steps, chain(collective, order, first, n - 1));
      } else if (channel == 0) {  // the other rings cross between systems at the same places
        steps = slowest_chain(collective, order, static_cast<std::size_t>(laps) * (n - 1));
      }
    }
    return steps;
  }

  Schedule schedule(const Collective& collective) const override {
    const Channels channels(collective);
    const int n = collective.size();
    Schedule schedule{.chunks = channels.count() * (has_root(collective) ? 1 : n)};
    std::vector<int> order;
    for (int channel = 0; channel < channels.count(); ++channel) {
      ring_order(channels, channel, has_root(collective), order);
      if (has_root(collective)) {
        add_chain(collective, order, channel, schedule);
      } else {
        add_laps(collective, order, {channel, channels.count()}, schedule);
      }
    }
    return schedule;
  }

 private:
  struct Channel {
    int index = 0, count = 1;
  };

  static bool has_root(const Collective& collective) {
    return collective.is_any({TransferKind::kBroadcast, TransferKind::kReduce});
  }
  static std::size_t first_hop(const Collective& collective) {
    return collective.kind == TransferKind::kReduce ? 1 : 0;
  }
  static void add_chain(const Collective& collective, const std::vector<int>& order, int channel,
                        Schedule& schedule) {
    const std::size_t n = order.size();
    const bool reduce = collective.kind == TransferKind::kReduce;
    for (std::size_t hop = 0; hop + 1 < n; ++hop) {
      const std::size_t from = hop + first_hop(collective);
      schedule.messages.push_back({static_cast<int>(hop),
                                   order[from],
                                   order[(from + 1) % n],
                                   {channel, 1},
                                   reduce ? ChunkOp::kReduce : ChunkOp::kCopy});
    }
  }

  /// One lap to reduce every chunk into its owner, one to pass it on to all others.
  static void add_laps(const Collective& collective, const std::vector<int>& order, Channel channel,
                       Schedule& schedule) {
    const int n = collective.size();
    const auto at = [&](int index) { return order[static_cast<std::size_t>((index + n) % n)]; };
    const auto chunk_of = [&](int owner) {
      return ChunkRange{at(owner) * channel.count + channel.index, 1};
    };
    const bool reduce = collective.kind != TransferKind::kAllGather;
    const bool gather = collective.kind != TransferKind::kReduceScatter;
    for (int i = 0; i < n; ++i) {
      for (int step = 0; step < n - 1; ++step) {
        if (reduce) schedule.reduce(step, at(i), at(i + 1), chunk_of(i - 1 - step));
        if (gather)
          schedule.copy(step + (reduce ? n - 1 : 0), at(i), at(i + 1), chunk_of(i - step));
      }
    }
  }
};

const AlgorithmRegistry::Register registered_ring(
    "ring", "neighbours pass chunks around; one ring per NIC between systems",
    std::make_shared<RingAlgorithm>());

}  // namespace
}  // namespace orrery
