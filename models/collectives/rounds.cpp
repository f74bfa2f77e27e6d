// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/rounds.h"

#include <bit>

namespace orrery {

int doubling_rounds(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
}

RoundWalk::RoundWalk(const Collective& collective, FlowSink& sink)
    : collective_(collective),
      sink_(sink),
      before_(collective.group.size()),
      after_(collective.group.size()) {}

void RoundWalk::send(int round, int from, int to, Bytes bytes) {
  if (round != round_) before_ = after_;
  round_ = round;
  sink_.add(collective_.rank(from), collective_.rank(to), bytes);
  const StepCount chain = before_[static_cast<std::size_t>(from)] + collective_.step(from, to);
  StepCount& received = after_[static_cast<std::size_t>(to)];
  received = longer(received, chain);
}

StepCount RoundWalk::longest() const {
  StepCount longest;
  for (const StepCount chain : after_) longest = longer(longest, chain);
  return longest;
}

StepCount RoundAlgorithm::run(const Collective& collective, FlowSink& sink) const {
  const Bytes chunk = chunk_bytes(collective, chunks(collective));
  RoundWalk walk(collective, sink);
  rounds(collective, [&](const Message& message) {
    walk.send(message.step, message.from, message.to,
              chunk * static_cast<double>(message.chunks.count));
  });
  return walk.longest();
}

Schedule RoundAlgorithm::schedule(const Collective& collective) const {
  Schedule schedule{.chunks = chunks(collective), .pace = Pace::kRank};
  rounds(collective, [&schedule](const Message& message) { schedule.messages.push_back(message); });
  return schedule;
}

}  // namespace orrery
