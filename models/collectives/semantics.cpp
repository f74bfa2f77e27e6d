// SPDX-License-Identifier: Apache-2.0
// The symbolic run of a schedule: chunks hold sets of contributions instead of numbers.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "models/collectives/schedule.h"

namespace orrery {
namespace {

/// How often each member has contributed to a chunk; all 0 where nothing is there.
using Contributions = std::vector<int>;

/// What a member has at first, or must have at last, of a chunk.
struct Content {
  enum class Kind { kNothing, kOne, kAll } kind = Kind::kNothing;
  int member = 0;  ///< kOne: whose contribution
};

Content one(int member) { return {Content::Kind::kOne, member}; }
constexpr Content kNothing{};
constexpr Content kAll{Content::Kind::kAll, 0};

/// What a collective promises, chunk by chunk.
class Promise {
  using enum TransferKind;

 public:
  Promise(TransferKind kind, int members, int chunks)
      : kind_(kind), members_(members), chunks_(chunks) {}

  /// Chunks come in so many equal parts.
  int parts() const {
    switch (kind_) {
      case kAllToAll:
      case kDispatch:
      case kCombine:
        return members_ * members_;
      case kAllGather:
      case kReduceScatter:
      case kGather:
      case kScatter:
      case kBarrier:
        return members_;
      default:
        return 1;
    }
  }

  Content at_first(int member, int chunk) const {
    const bool root = member == 0;
    switch (kind_) {
      case kAllReduce:
      case kReduceScatter:
      case kReduce:
        return one(member);
      case kAllGather:
      case kGather:
      case kBarrier:
        return part(chunk) == member ? one(member) : kNothing;
      case kBroadcast:
      case kScatter:
      case kSendReceive:
        return root ? one(0) : kNothing;
      case kAllToAll:
      case kDispatch:
      case kCombine:
        return part(chunk) / members_ == member ? one(member) : kNothing;
    }
    return kNothing;
  }

  /// Nothing: whatever it has does not matter.
  Content at_last(int member, int chunk) const {
    const bool root = member == 0;
    switch (kind_) {
      case kAllReduce:
        return kAll;
      case kReduceScatter:
        return part(chunk) == member ? kAll : kNothing;
      case kReduce:
        return root ? kAll : kNothing;
      case kAllGather:
      case kBarrier:
        return one(part(chunk));
      case kGather:
        return root ? one(part(chunk)) : kNothing;
      case kBroadcast:
        return one(0);
      case kScatter:
        return part(chunk) == member ? one(0) : kNothing;
      case kSendReceive:
        return member == members_ - 1 ? one(0) : kNothing;
      case kAllToAll:
      case kDispatch:
      case kCombine:
        return part(chunk) % members_ == member ? one(part(chunk) / members_) : kNothing;
    }
    return kNothing;
  }

 private:
  int part(int chunk) const { return chunk / (chunks_ / parts()); }

  TransferKind kind_;
  int members_;
  int chunks_;
};

bool empty(const Contributions& contributions) {
  return std::all_of(contributions.begin(), contributions.end(), [](int n) { return n == 0; });
}

class SymbolicRun {
 public:
  SymbolicRun(const Collective& collective, const Schedule& schedule)
      : collective_(collective),
        schedule_(schedule),
        promise_(collective.kind, collective.size(), schedule.chunks) {}

  std::optional<ScheduleFault> run() {
    if (schedule_.chunks < 1 || schedule_.chunks % promise_.parts() != 0) {
      return ScheduleFault{
          {},
          fmt::format("{} chunks cannot be shared out; {} among {} ranks needs a multiple of {}",
                      schedule_.chunks, to_string(collective_.kind), collective_.size(),
                      promise_.parts())};
    }
    fill();
    std::map<int, std::vector<std::size_t>> steps;  // indices of messages
    for (std::size_t i = 0; i < schedule_.messages.size(); ++i)
      steps[schedule_.messages[i].step].push_back(i);
    for (const auto& [step, messages] : steps) {
      play(messages);
      if (fault_) return fault_;
    }
    check_result();
    return fault_;
  }

 private:
  struct Cell {
    Contributions has;
    int chunk = -1;    ///< whose contributions they are
    int written = -1;  ///< last step that wrote it
    bool copied = false;
  };
  struct Arrival {
    std::size_t message = 0;
    int cell = 0;   ///< cell of the receiver
    int chunk = 0;  ///< whose contributions come
    Contributions content;
  };

  std::size_t position(int member, int cell) const {
    return static_cast<std::size_t>(member) * static_cast<std::size_t>(schedule_.cells()) +
           static_cast<std::size_t>(cell);
  }
  Cell& cell(int member, int cell) { return cells_[position(member, cell)]; }
  /// The chunk that a cell of a member has to hold, at first or at last; -1: none.
  int chunk_of(int member, int cell, std::vector<int> ChunkPlaces::*when) const {
    return schedule_.places ? ((*schedule_.places).*when)[position(member, cell)] : cell;
  }

  void fill() {
    const auto members = collective_.group.size();
    cells_.resize(members * static_cast<std::size_t>(schedule_.cells()),
                  {Contributions(members, 0)});
    for (int member = 0; member < collective_.size(); ++member) {
      for (int at = 0; at < schedule_.cells(); ++at) {
        const int chunk = chunk_of(member, at, &ChunkPlaces::first);
        if (chunk < 0) continue;
        const Content content = promise_.at_first(member, chunk);
        if (content.kind != Content::Kind::kOne) continue;
        cell(member, at).has[static_cast<std::size_t>(content.member)] = 1;
        cell(member, at).chunk = chunk;
      }
    }
  }

  std::string name(int end) const {
    if (is_switches(end)) return fmt::format("switches {}", -1 - end);
    return fmt::format("rank {}", collective_.rank(end));
  }

  void fail(std::size_t message, const std::string& text) {
    if (fault_) return;
    const int step = schedule_.messages[message].step;
    fault_ = ScheduleFault{message, fmt::format("step {}: {}", step, text)};
  }

  bool in_range(std::size_t index) {
    const Message& m = schedule_.messages[index];
    const auto exists = [&](int end) {
      return is_switches(end) ? collective_.switches_reduce || collective_.systems_reduce
                              : end < collective_.size();
    };
    const int first = std::min(m.chunks.first, m.target());
    const int last = std::max(m.chunks.first, m.target());
    if (!exists(m.from) || !exists(m.to)) {
      fail(index, fmt::format("the group has no member {}", exists(m.from) ? m.to : m.from));
    } else if ((m.from == m.to && first == last) || (is_switches(m.from) && is_switches(m.to))) {
      fail(index, name(m.from) + " sends to itself");
    } else if (first < 0 || m.chunks.count < 1 || m.chunks.count > schedule_.cells() - last) {
      fail(index, fmt::format("there is no chunk {} of {}", std::max(0, last + m.chunks.count - 1),
                              schedule_.cells()));
    }
    return !fault_;
  }

  /// All messages of a step: first what ranks send, then what switches send on, then what arrives.
  void play(const std::vector<std::size_t>& messages) {
    std::map<std::pair<int, int>, Contributions> switched;  // by group of switches and chunk
    std::vector<Arrival> arrivals;
    for (const std::size_t i : messages) {
      if (!in_range(i)) return;
      if (!is_switches(schedule_.messages[i].from)) send(i, switched, arrivals);
    }
    for (const std::size_t i : messages) {
      if (is_switches(schedule_.messages[i].from)) send_on(i, switched, arrivals);
    }
    for (const Arrival& arrival : arrivals) receive(arrival);
  }

  void send(std::size_t index, std::map<std::pair<int, int>, Contributions>& switched,
            std::vector<Arrival>& arrivals) {
    const Message& m = schedule_.messages[index];
    for (int chunk = m.chunks.first; chunk < m.chunks.first + m.chunks.count; ++chunk) {
      const Cell& source = cell(m.from, chunk);
      const Contributions& content = source.has;
      if (empty(content)) {
        fail(index, fmt::format("{} sends chunk {} before it has it", name(m.from), chunk));
        return;
      }
      if (!is_switches(m.to)) {
        arrivals.push_back({index, m.target() + chunk - m.chunks.first, source.chunk, content});
        continue;
      }
      Contributions& sum = switched[{m.to, chunk}];
      sum.resize(content.size());
      if (m.op == ChunkOp::kCopy && !empty(sum)) {
        fail(index, fmt::format("{} get two copies of chunk {}", name(m.to), chunk));
      }
      add(index, chunk, content, sum);
    }
  }

  void send_on(std::size_t index, const std::map<std::pair<int, int>, Contributions>& switched,
               std::vector<Arrival>& arrivals) {
    const Message& m = schedule_.messages[index];
    for (int chunk = m.chunks.first; chunk < m.chunks.first + m.chunks.count; ++chunk) {
      const auto sum = switched.find({m.from, chunk});
      if (sum == switched.end()) {
        fail(index, fmt::format("{} send chunk {} to {} without having it", name(m.from), chunk,
                                name(m.to)));
        return;
      }
      arrivals.push_back({index, chunk, chunk, sum->second});
    }
  }

  /// Adds contributions; none may be there already.
  void add(std::size_t index, int chunk, const Contributions& content, Contributions& sum) {
    const Message& m = schedule_.messages[index];
    for (std::size_t member = 0; member < content.size(); ++member) {
      sum[member] += content[member];
      if (sum[member] <= 1) continue;
      fail(index, fmt::format("{} gets the contribution of {} to chunk {} twice (from {})",
                              name(m.to), name(static_cast<int>(member)), chunk, name(m.from)));
    }
  }

  void receive(const Arrival& arrival) {
    const Message& m = schedule_.messages[arrival.message];
    Cell& target = cell(m.to, arrival.cell);
    const bool copy = m.op == ChunkOp::kCopy;
    if (target.written == m.step && (copy || target.copied)) {
      fail(arrival.message,
           fmt::format("chunk {} of {} is written twice in one step", arrival.cell, name(m.to)));
    } else if (copy) {
      target.has = arrival.content;
      target.chunk = arrival.chunk;
    } else if (empty(target.has)) {
      fail(arrival.message,
           fmt::format("{} adds to chunk {}, which it does not have", name(m.to), arrival.cell));
    } else if (target.chunk != arrival.chunk) {
      fail(arrival.message,
           fmt::format("{} adds chunk {} to chunk {}", name(m.to), arrival.chunk, target.chunk));
    } else {
      add(arrival.message, arrival.chunk, arrival.content, target.has);
    }
    target.written = m.step;
    target.copied = copy;
  }

  void check_result() {
    for (int member = 0; member < collective_.size(); ++member) {
      for (int at = 0; at < schedule_.cells(); ++at) check_cell(member, at);
    }
  }

  void check_cell(int member, int at) {
    const int chunk = chunk_of(member, at, &ChunkPlaces::last);
    const Content goal = chunk < 0 ? kNothing : promise_.at_last(member, chunk);
    if (goal.kind == Content::Kind::kNothing || fault_) return;
    const Cell& result = cell(member, at);
    for (int other = 0; other < collective_.size(); ++other) {
      const bool wanted = goal.kind == Content::Kind::kAll || goal.member == other;
      const bool there = result.chunk == chunk && result.has[static_cast<std::size_t>(other)] > 0;
      if (wanted == there) continue;
      const std::string when = result.written < 0
                                   ? "no step wrote it"
                                   : fmt::format("last written in step {}", result.written);
      fault_ = ScheduleFault{
          {},
          fmt::format("{} ends with chunk {} {} the contribution of {} ({})", name(member), chunk,
                      wanted ? "without" : "with", name(other), when)};
      return;
    }
  }

  const Collective& collective_;
  const Schedule& schedule_;
  Promise promise_;
  std::vector<Cell> cells_;  // by member and cell
  std::optional<ScheduleFault> fault_;
};

}  // namespace

std::optional<ScheduleFault> verify_semantics(const Collective& collective,
                                              const Schedule& schedule) {
  return SymbolicRun(collective, schedule).run();
}

}  // namespace orrery
