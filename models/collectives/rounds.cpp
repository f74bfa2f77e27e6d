// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/rounds.h"

namespace orrery {

int doubling_rounds(int n) {
  int rounds = 0;
  while ((std::int64_t{1} << rounds) < n) ++rounds;
  return rounds;
}

RoundWalk::RoundWalk(const Collective& collective, FlowSink& sink)
    : collective_(collective),
      sink_(sink),
      before_(collective.group.size()),
      after_(collective.group.size()) {}

void RoundWalk::send(int round, int from, int to, Bytes bytes) {
  if (round != round_) before_ = after_;
  round_ = round;
  const auto sender = static_cast<std::size_t>(from), receiver = static_cast<std::size_t>(to);
  sink_.add(collective_.group[sender], collective_.group[receiver], bytes);
  const StepCount chain = before_[sender] + collective_.step(from, to);
  after_[receiver] = longer(after_[receiver], chain);
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
