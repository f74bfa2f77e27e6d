// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/rounds.h"

namespace orrery {

int doubling_rounds(int n) {
  int rounds = 0;
  while ((std::int64_t{1} << rounds) < n) ++rounds;
  return rounds;
}

StepCount RoundAlgorithm::run(const Collective& collective, FlowSink& sink) const {
  const Bytes chunk = chunk_bytes(collective, chunks(collective));
  std::vector<StepCount> ready(collective.group.size());  // by member: its chain before the round
  std::vector<StepCount> next = ready;                    // and after it
  int round = 0;
  rounds(collective, [&](const Message& message) {
    if (message.step != round) ready = next;
    round = message.step;
    const auto from = static_cast<std::size_t>(message.from);
    const auto to = static_cast<std::size_t>(message.to);
    sink.add(collective.group[from], collective.group[to],
             chunk * static_cast<double>(message.chunks.count));
    const bool crosses = collective.crosses(message.from, message.to);
    next[to] = longer(next[to], step_after(ready[from], crosses));
  });
  StepCount longest;
  for (const StepCount chain : next) longest = longer(longest, chain);
  return longest;
}

Schedule RoundAlgorithm::schedule(const Collective& collective) const {
  Schedule schedule{.chunks = chunks(collective), .pace = Pace::kRank};
  rounds(collective, [&schedule](const Message& message) { schedule.messages.push_back(message); });
  return schedule;
}

}  // namespace orrery
