// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "models/collectives/schedule.h"

namespace orrery {

/// An algorithm in rounds, as MPI libraries write them: a rank begins a round when it has done
/// those before. One list of messages gives flows, steps and schedule.
class RoundAlgorithm : public CollectiveAlgorithm {
 public:
  StepCount run(const Collective& collective, FlowSink& sink) const final;
  Schedule schedule(const Collective& collective) const final;

 protected:
  /// How many chunks the messages cut the buffer into.
  virtual int chunks(const Collective& collective) const = 0;
  /// Tells all messages between members, round after round.
  virtual void rounds(const Collective& collective,
                      const std::function<void(const Message&)>& tell) const = 0;
};

/// Rounds that it takes to reach `n` ranks when their number doubles in each.
int doubling_rounds(int n);

}  // namespace orrery
