// SPDX-License-Identifier: Apache-2.0
// Every rank sends to every other at once. Of a buffer S over n ranks each ordered pair exchanges
//
//   all_to_all                   S/n    in 1 step: NCCL's grouped sends and receives
//   all_gather, reduce_scatter   S/n    in 1 step
//   all_reduce                  2 S/n   in 2 steps: reduce-scatter, then all-gather, as the
//                                       two-shot kernels of TensorRT-LLM and vLLM do
//   barrier                      0      in 1 step: a flag for everyone
//   gather, scatter              S/n    with the root only, in 1 step: NCCL's grouped sends
//
// Reductions and gathers read and write the memory of peers, which only a scale-up fabric allows.
// What is made of messages goes anywhere. The messages of one rank share its links; no cost per
// message is added to that.
#include <memory>

#include "models/collectives/schedule.h"

namespace orrery {
namespace {

class DirectAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    using enum TransferKind;
    if (collective.is_any({kAllToAll, kGather, kScatter})) return true;
    return collective.is_any({kAllReduce, kAllGather, kReduceScatter, kBarrier}) &&
           !collective.spans_systems();
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const int steps = collective.kind == TransferKind::kAllReduce ? 2 : 1;
    const Bytes per_pair = collective.bytes * (static_cast<double>(steps) / collective.size());
    const int root = collective.group.front();
    if (collective.kind == TransferKind::kGather) {
      for (const int rank : collective.group.subspan(1)) sink.add(rank, root, per_pair);
    } else if (collective.kind == TransferKind::kScatter) {
      for (const int rank : collective.group.subspan(1)) sink.add(root, rank, per_pair);
    } else if (!collective.pair_bytes.empty()) {
      sink.exchange_parts(collective);
    } else {
      sink.exchange(collective.group, per_pair);
    }
    return collective.spans_systems() ? StepCount{.scale_out = steps}
                                      : StepCount{.scale_up = steps};
  }

  Schedule schedule(const Collective& collective) const override {
    const int n = collective.size();
    const bool all_pairs = collective.kind == TransferKind::kAllToAll;
    Schedule schedule{.chunks = all_pairs ? n * n : n};
    for (int from = 0; from < n; ++from) {
      for (int to = 0; to < n; ++to) {
        if (from != to) add_pair(collective, from, to, schedule);
      }
    }
    return schedule;
  }

 private:
  static void add_pair(const Collective& collective, int from, int to, Schedule& schedule) {
    switch (collective.kind) {
      case TransferKind::kAllToAll:
        schedule.copy(0, from, to, {from * collective.size() + to, 1});
        break;
      case TransferKind::kAllGather:
      case TransferKind::kBarrier:
        schedule.copy(0, from, to, {from, 1});
        break;
      case TransferKind::kReduceScatter:
        schedule.reduce(0, from, to, {to, 1});
        break;
      case TransferKind::kAllReduce:
        schedule.reduce(0, from, to, {to, 1});
        schedule.copy(1, from, to, {from, 1});
        break;
      case TransferKind::kGather:
        if (to == 0) schedule.copy(0, from, to, {from, 1});
        break;
      case TransferKind::kScatter:
        if (from == 0) schedule.copy(0, from, to, {to, 1});
        break;
      default:
        break;
    }
  }
};

const AlgorithmRegistry::Register registered_direct(
    "direct",
    "every rank sends to every other at once (all_reduce: two-shot); reductions inside a system",
    std::make_shared<DirectAlgorithm>());

}  // namespace
}  // namespace orrery
