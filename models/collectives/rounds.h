// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "models/collectives/schedule.h"

namespace orrery {

/// Counts the steps of an algorithm in rounds while its flows are told, round after round. A rank
/// begins a round when it has done those before.
class RoundWalk {
 public:
  RoundWalk(const Collective& collective, FlowSink& sink);

  /// One member sends to another.
  void send(int round, int from, int to, Bytes bytes);
  StepCount longest() const;

 private:
  const Collective& collective_;
  FlowSink& sink_;
  std::vector<StepCount> before_, after_;  // chains by member, before and after the round
  int round_ = 0;
};

/// An algorithm in rounds, as MPI libraries write them. One list of messages gives flows, steps and
/// schedule.
class RoundAlgorithm : public CollectiveAlgorithm {
 public:
  bool counts_links() const final { return true; }
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
