// SPDX-License-Identifier: Apache-2.0
// A message: one flow, one step.
#include <memory>

#include "models/collectives/schedule.h"

namespace orrery {
namespace {

class SendReceiveAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.kind == TransferKind::kSendReceive;
  }

  bool counts_links() const override { return true; }
  StepCount run(const Collective& collective, FlowSink& sink) const override {
    sink.add(collective.group.front(), collective.group.back(), collective.bytes);
    return collective.step(0, collective.size() - 1);
  }

  Schedule schedule(const Collective& collective) const override {
    Schedule schedule;
    schedule.copy(0, 0, collective.size() - 1, {});
    return schedule;
  }
};

const AlgorithmRegistry::Register registered_send_receive("send_receive",
                                                          "one message from one rank to another",
                                                          std::make_shared<SendReceiveAlgorithm>());

}  // namespace
}  // namespace orrery
