// SPDX-License-Identifier: Apache-2.0
// Every rank sends to every other at once. Of a buffer S over n ranks each ordered pair exchanges
//
//   all_to_all                   S/n    in 1 step: NCCL's grouped sends and receives
//   all_gather, reduce_scatter   S/n    in 1 step
//   all_reduce                  2 S/n   in 2 steps: reduce-scatter, then all-gather, as the
//                                       two-shot kernels of TensorRT-LLM and vLLM do
//
// Reductions and gathers read and write the memory of peers, which only a scale-up fabric allows.
// An all-to-all is made of messages and goes anywhere. The messages of one rank share its links; no
// cost per message is added to that.
#include <memory>

#include "models/collectives/algorithm.h"

namespace orrery {
namespace {

class DirectAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    switch (collective.kind) {
      case TransferKind::kAllToAll:
        return true;
      case TransferKind::kAllReduce:
      case TransferKind::kAllGather:
      case TransferKind::kReduceScatter:
        return !collective.spans_systems();
      default:
        return false;
    }
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const int steps = collective.kind == TransferKind::kAllReduce ? 2 : 1;
    const Bytes per_pair = collective.bytes * (static_cast<double>(steps) / collective.size());
    sink.exchange(collective.group, per_pair);
    return collective.spans_systems() ? StepCount{.scale_out = steps}
                                      : StepCount{.scale_up = steps};
  }
};

const AlgorithmRegistry::Register registered(
    "direct", "every rank sends to every other at once; reductions only inside a system",
    std::make_shared<DirectAlgorithm>());

}  // namespace
}  // namespace orrery
