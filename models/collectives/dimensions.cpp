// SPDX-License-Identifier: Apache-2.0
// One dimension of the network after the other, in each the algorithm that it has, as ASTRA-sim
// carries out collectives (Rashidi et al., "ASTRA-sim", ISPASS 2020; Cho et al., "BlueConnect",
// MLSys 2019). Of a buffer S, n ranks on a line and the phases of dimension_phases.h, a phase that
// scatters or gathers D takes
//
//   ring              (n-1)/n D to the next rank            in n-1 steps
//   direct                1/n D to each other rank          in 1
//   halving_doubling  (n-1)/n D, D/2 to the rank beside,    in log2 n
//                               D/4 to that 2 away, ...
//
// The buffer goes through in chunks, which models/transfers/dimension_price.h has the times of;
// here it is one.
#include <algorithm>
#include <memory>

#include "models/collectives/dimension_phases.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

/// Places of the members of a group in its dimensions.
class Lines {
 public:
  explicit Lines(const Collective& collective) : collective_(collective) {
    for (const DimensionConfig* dimension : collective.dimensions) {
      strides_.push_back(members_);
      members_ *= dimension->size;
    }
  }

  int members() const { return members_; }
  int size(std::size_t d) const { return collective_.dimensions[d]->size; }
  int place(int member, std::size_t d) const { return member / strides_[d] % size(d); }
  /// The member at another place of its line.
  int at(int member, std::size_t d, int place_there) const {
    return member + (place_there - place(member, d)) * strides_[d];
  }

 private:
  const Collective& collective_;
  std::vector<int> strides_;
  int members_ = 1;
};

/// Ranks double what they have scattered with a partner 1, 2, 4, ... places away, and gather it
/// backwards. After t steps of the scatter a rank has the parts of all places that agree with it in
/// the lowest t bits.
Schedule halving_doubling(const Collective& line, int steps) {
  Schedule schedule{.chunks = line.size()};
  const bool scatters = line.kind != TransferKind::kAllGather;
  const auto tell = [&](int step, int distance, ChunkOp op) {
    for (int from = 0; from < line.size(); ++from) {
      const int to = from ^ distance, owner = op == ChunkOp::kReduce ? to : from;
      for (int place = owner % (2 * distance); place < line.size(); place += 2 * distance)
        schedule.messages.push_back({step, from, to, {place, 1}, op});
    }
  };
  for (int t = 0; t < steps; ++t) {
    if (scatters) tell(t, 1 << t, ChunkOp::kReduce);
    if (line.kind != TransferKind::kReduceScatter)
      tell((scatters ? 2 * steps : steps) - 1 - t, 1 << t, ChunkOp::kCopy);
  }
  return schedule;
}

/// What the ranks of one line send each other in a phase.
Schedule line_schedule(const Collective& line, const DimensionConfig& dimension) {
  if (dimension.algorithm == LineAlgorithm::kHalvingDoubling)
    return halving_doubling(line, line_steps(dimension));
  const bool ring = dimension.algorithm == LineAlgorithm::kRing;
  return AlgorithmRegistry::at("collective", ring ? "ring" : "direct")->schedule(line);
}

class DimensionAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    switch (collective.kind) {
      case TransferKind::kAllReduce:
      case TransferKind::kAllGather:
      case TransferKind::kReduceScatter:
        return !collective.dimensions.empty();
      default:
        return false;
    }
  }

  bool counts_links() const override { return true; }
  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Lines lines(collective);
    int steps = 0;
    for (const DimensionPhase& phase : dimension_phases(collective)) {
      const int passes = phase.scatters() && phase.gathers() ? 2 : 1;
      send(collective, lines, phase.dimension, collective.bytes * (phase.share * passes), sink);
      steps += passes * line_steps(*collective.dimensions[phase.dimension]);
    }
    return {.scale_up = steps};
  }

  Schedule schedule(const Collective& collective) const override {
    const Lines lines(collective);
    Schedule schedule{.chunks = collective.size()};
    std::vector<bool> scattered(collective.dimensions.size(),
                                collective.kind == TransferKind::kAllGather);
    for (const DimensionPhase& phase : dimension_phases(collective)) {
      scattered[phase.dimension] = false;
      add_phase(collective, lines, scattered, phase, schedule);
      scattered[phase.dimension] = !phase.gathers();
    }
    return schedule;
  }

 private:
  /// What goes along all lines of a dimension that scatter or gather `bytes`.
  static void send(const Collective& collective, const Lines& lines, std::size_t d, Bytes bytes,
                   FlowSink& sink) {
    const int n = lines.size(d);
    const auto rank = [&](int member) {
      return collective.group[static_cast<std::size_t>(member)];
    };
    for (int member = 0; member < lines.members(); ++member) {
      const int here = lines.place(member, d);
      const auto add = [&](int place, Bytes part) {
        sink.add(rank(member), rank(lines.at(member, d, place)), part);
      };
      switch (collective.dimensions[d]->algorithm) {
        case LineAlgorithm::kRing:
          add((here + 1) % n, bytes / n * (n - 1));
          break;
        case LineAlgorithm::kDirect:
          for (int i = 1; i < n; ++i) add((here + i) % n, bytes / n);
          break;
        case LineAlgorithm::kHalvingDoubling:
          for (int distance = 1; distance < n; distance *= 2)
            add(here ^ distance, bytes / (2 * distance));
          break;
      }
    }
  }

  /// The messages of a phase along all lines, behind what the schedule has. One about a place of a
  /// line moves the chunks of all members there which agree with the sender in the dimensions that
  /// are scattered already.
  static void add_phase(const Collective& collective, const Lines& lines,
                        const std::vector<bool>& scattered, const DimensionPhase& phase,
                        Schedule& schedule) {
    const std::size_t d = phase.dimension;
    int first = 0;
    for (const Message& message : schedule.messages) first = std::max(first, message.step + 1);
    const std::span<const int> places = collective.group.first(index(lines.size(d)));
    const Schedule line =
        line_schedule({phase.kind, Bytes(0), places, collective.layout}, *collective.dimensions[d]);
    for (const Message& message : line.messages) {
      for (int owner = 0; owner < lines.members(); ++owner) {
        if (lines.place(owner, d) != message.chunks.first) continue;
        for (int from = 0; from < lines.members(); ++from) {
          bool moves = lines.place(from, d) == message.from;
          for (std::size_t other = 0; moves && other < scattered.size(); ++other)
            moves = !scattered[other] || lines.place(owner, other) == lines.place(from, other);
          if (!moves) continue;
          schedule.messages.push_back(
              {first + message.step, from, lines.at(from, d, message.to), {owner, 1}, message.op});
        }
      }
    }
  }
};

const AlgorithmRegistry::Register registered_dimension_algorithm(
    "dimensions", "one dimension of the network after the other, each by its own algorithm",
    std::make_shared<DimensionAlgorithm>());

}  // namespace
}  // namespace orrery
