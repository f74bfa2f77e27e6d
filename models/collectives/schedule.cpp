// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace orrery {

Bytes chunk_bytes(const Collective& collective, int chunks) {
  using enum TransferKind;
  const bool all_pairs = collective.is_any({kAllToAll, kDispatch, kCombine});
  return collective.bytes * (static_cast<double>(all_pairs ? collective.size() : 1) / chunks);
}

namespace {

/// Chains of messages, walked step by step.
class ChainWalk {
 public:
  ChainWalk(const Collective& collective, const Schedule& schedule)
      : collective_(collective),
        schedule_(schedule),
        chunks_(schedule.pace == Pace::kChunk ? schedule.chunks : 1),
        ready_(collective.group.size() * static_cast<std::size_t>(chunks_)) {}

  /// The messages of one step.
  void step(const std::vector<Message>& messages) {
    const std::vector<StepCount> before = ready_;
    std::map<int, StepCount> switch_ready;
    const std::map<int, bool> switch_crosses = switches_between_systems(messages);
    StepCount slowest;
    for (const Message& message : messages) {
      if (!is_switches(message.to)) continue;
      const StepCount chain = sender_ready(before, message);
      switch_ready[message.to] = longer(switch_ready[message.to], chain);
    }
    for (const Message& message : messages) {
      if (is_switches(message.to)) continue;
      const bool from_switch = is_switches(message.from);
      const StepCount step = from_switch ? step_after({}, switch_crosses.at(message.from))
                                         : collective_.step(message.from, message.to);
      const StepCount chain =
          from_switch ? switch_ready[message.from] : sender_ready(before, message);
      slowest = longer(slowest, step);
      receive(message, chain + step);
    }
    rounds_ = rounds_ + slowest;
  }

  StepCount longest() const {
    if (schedule_.pace == Pace::kRound) return rounds_;
    StepCount longest;
    for (const StepCount chain : ready_) longest = longer(longest, chain);
    return longest;
  }

 private:
  std::size_t first(int member, ChunkRange range) const {
    const int chunk = schedule_.pace == Pace::kChunk ? range.first : 0;
    return static_cast<std::size_t>(member) * static_cast<std::size_t>(chunks_) +
           static_cast<std::size_t>(chunk);
  }
  std::size_t count(ChunkRange range) const {
    return static_cast<std::size_t>(schedule_.pace == Pace::kChunk ? range.count : 1);
  }

  StepCount sender_ready(const std::vector<StepCount>& before, const Message& message) const {
    StepCount chain;
    const std::size_t begin = first(message.from, message.chunks);
    for (std::size_t i = begin; i < begin + count(message.chunks); ++i)
      chain = longer(chain, before[i]);
    return chain;
  }

  void receive(const Message& message, StepCount chain) {
    const std::size_t begin = first(message.to, message.chunks);
    for (std::size_t i = begin; i < begin + count(message.chunks); ++i)
      ready_[i] = longer(ready_[i], chain);
  }

  /// Which groups of switches join ranks of different systems in this step.
  std::map<int, bool> switches_between_systems(const std::vector<Message>& messages) const {
    std::map<int, int> some_member;
    std::map<int, bool> crosses;
    for (const Message& message : messages) {
      if (!is_switches(message.from) && !is_switches(message.to)) continue;
      const auto [switch_end, member] = is_switches(message.from)
                                            ? std::pair{message.from, message.to}
                                            : std::pair{message.to, message.from};
      const int other = some_member.emplace(switch_end, member).first->second;
      crosses[switch_end] = crosses[switch_end] || collective_.crosses(other, member);
    }
    return crosses;
  }

  const Collective& collective_;
  const Schedule& schedule_;
  int chunks_;                    // 1 where chunks do not matter
  std::vector<StepCount> ready_;  // by member and chunk
  StepCount rounds_;
};

}  // namespace

StepCount dependent_steps(const Collective& collective, const Schedule& schedule) {
  std::map<int, std::vector<Message>> steps;
  for (const Message& message : schedule.messages) steps[message.step].push_back(message);
  ChainWalk walk(collective, schedule);
  for (const auto& [step, messages] : steps) walk.step(messages);
  return walk.longest();
}

}  // namespace orrery
