// SPDX-License-Identifier: Apache-2.0
// Pairwise exchange: an all_to_all in n-1 rounds, in round k every rank sends to the k-th after it
// (Thakur et al., IJHPCA 2005). The bytes are those of `direct`; every link is used by one message
// at a time, and every round waits for its slowest message. With parts of different sizes the price
// is that of the heaviest link; what the rounds of lighter ones wait for is left out.
#include <memory>

#include "models/collectives/schedule.h"

namespace orrery {
namespace {

class PairwiseAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    return collective.kind == TransferKind::kAllToAll;
  }
  bool automatic() const override { return false; }

  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const int n = collective.size();
    if (collective.pair_bytes.empty()) {
      sink.exchange(collective.group, collective.bytes / n);
    } else {
      sink.exchange_parts(collective);
    }
    StepCount steps;
    for (int round = 1; round < n; ++round) steps = step_after(steps, crosses(collective, round));
    return steps;
  }

  Schedule schedule(const Collective& collective) const override {
    const int n = collective.size();
    Schedule schedule{.chunks = n * n, .pace = Pace::kRound};
    for (int round = 1; round < n; ++round) {
      for (int from = 0; from < n; ++from) {
        const int to = (from + round) % n;
        schedule.copy(round - 1, from, to, {from * n + to, 1});
      }
    }
    return schedule;
  }

 private:
  /// Whether some message of a round goes between systems.
  static bool crosses(const Collective& collective, int round) {
    const int n = collective.size();
    for (int from = 0; from < n; ++from) {
      if (collective.crosses(from, (from + round) % n)) return true;
    }
    return false;
  }
};

const AlgorithmRegistry::Register registered_pairwise("pairwise",
                                                      "all_to_all in rounds, one partner at a time",
                                                      std::make_shared<PairwiseAlgorithm>());

}  // namespace
}  // namespace orrery
