// SPDX-License-Identifier: Apache-2.0
// Rings (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", JPDC 2009). Of a buffer S over n ranks every link of the ring carries
//
//   all_gather, reduce_scatter   (n-1)/n S    in n-1 steps
//   all_reduce                  2(n-1)/n S    in 2(n-1) steps
//   broadcast                         S       in n-1 steps, pipelined; nothing into the root
//
// Between systems there is one ring per NIC, as NCCL builds them (Hu et al., "Demystifying NCCL",
// arXiv 2507.04786).
#include <algorithm>
#include <memory>
#include <vector>

#include "models/collectives/channels.h"

namespace orrery {
namespace {

std::vector<int> ring_order(const Channels& channels, int channel) {
  std::vector<int> order;
  for (int system = 0; system < channels.systems(); ++system) {
    const std::vector<int> part = channels.visit(system, channel);
    order.insert(order.end(), part.begin(), part.end());
  }
  return order;
}

/// The chain of `hops` consecutive hops with the most crossings between systems. A chunk waits for
/// the hop before, but not for other chunks, so the slowest chain is the latency: NCCL's own model
/// counts one crossing per system and lap.
StepCount slowest_chain(const std::vector<int>& order, std::size_t hops, const RankLayout& layout) {
  const std::size_t n = order.size();
  const auto crosses = [&](std::size_t i) {
    return layout.system(order[i % n]) != layout.system(order[(i + 1) % n]) ? 1 : 0;
  };
  int crossings = 0;
  for (std::size_t i = 0; i < hops; ++i) crossings += crosses(i);
  int most = crossings;
  for (std::size_t start = 1; start < n; ++start) {
    crossings += crosses(start + hops - 1) - crosses(start - 1);
    most = std::max(most, crossings);
  }
  return {.scale_up = static_cast<int>(hops) - most, .scale_out = most};
}

class RingAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    switch (collective.kind) {
      case TransferKind::kAllReduce:
      case TransferKind::kAllGather:
      case TransferKind::kReduceScatter:
      case TransferKind::kBroadcast:
        return true;
      default:
        return false;
    }
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Channels channels(collective);
    const auto n = static_cast<std::size_t>(collective.size());
    const bool broadcast = collective.kind == TransferKind::kBroadcast;
    const double laps = collective.kind == TransferKind::kAllReduce ? 2 : 1;
    const double passes =
        broadcast ? 1 : laps * static_cast<double>(n - 1) / static_cast<double>(n);
    const Bytes per_link = collective.bytes * (passes / channels.count());
    for (int channel = 0; channel < channels.count(); ++channel) {
      const std::vector<int> order = ring_order(channels, channel);
      for (std::size_t i = 0; i < n; ++i) {
        const int next = order[(i + 1) % n];
        if (broadcast && next == collective.group.front()) continue;
        sink.add(order[i], next, per_link);
      }
    }
    return slowest_chain(ring_order(channels, 0), static_cast<std::size_t>(laps) * (n - 1),
                         collective.layout);
  }
};

const AlgorithmRegistry::Register registered(
    "ring", "neighbours pass chunks around; one ring per NIC between systems",
    std::make_shared<RingAlgorithm>());

}  // namespace
}  // namespace orrery
