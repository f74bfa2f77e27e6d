// SPDX-License-Identifier: Apache-2.0
// One-shot all_reduce: every rank reads the whole buffer of every other one and adds up by itself,
// as the kernels for small messages of TensorRT-LLM and vLLM do. (n-1) S in 1 step, where two-shot
// (`direct`) takes 2(n-1)/n S in 2.
#include <memory>

#include "models/collectives/schedule.h"

namespace orrery {
namespace {

class OneShotAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.kind == TransferKind::kAllReduce && !collective.spans_systems();
  }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    sink.exchange(collective.group, collective.bytes);
    return {.scale_up = 1};
  }

  Schedule schedule(const Collective& collective) const override {
    Schedule schedule;
    for (int from = 0; from < collective.size(); ++from) {
      for (int to = 0; to < collective.size(); ++to) {
        if (from != to) schedule.reduce(0, from, to, {});
      }
    }
    return schedule;
  }
};

const AlgorithmRegistry::Register registered_one_shot(
    "one_shot", "all_reduce inside a system: everyone reads everyone's whole buffer",
    std::make_shared<OneShotAlgorithm>());

}  // namespace
}  // namespace orrery
