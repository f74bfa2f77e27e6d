// SPDX-License-Identifier: Apache-2.0
// A message: one flow, one step.
#include <memory>

#include "models/collectives/algorithm.h"

namespace orrery {
namespace {

class SendReceiveAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.kind == TransferKind::kSendReceive;
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    sink.add(collective.group.front(), collective.group.back(), collective.bytes);
    return collective.spans_systems() ? StepCount{.scale_out = 1} : StepCount{.scale_up = 1};
  }
};

const AlgorithmRegistry::Register registered("send_receive", "one message from one rank to another",
                                             std::make_shared<SendReceiveAlgorithm>());

}  // namespace
}  // namespace orrery
