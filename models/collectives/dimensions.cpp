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
#include <functional>
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

/// One message along a line: the parts of some places of it.
struct LineMessage {
  int step = 0;
  int from = 0, to = 0;
  std::vector<int> places = {};
};
using TellLine = std::function<void(const LineMessage&)>;

/// A lap from each rank to the next one. A part begins `behind` places behind the rank: it ends, 1,
/// at its own place, or, 0, begins there.
void tell_ring(const Lines& lines, std::size_t d, int behind, const TellLine& tell) {
  const int n = lines.size(d);
  for (int member = 0; member < lines.members(); ++member) {
    const int here = lines.place(member, d), to = lines.at(member, d, (here + 1) % n);
    for (int i = 0; i < n - 1; ++i) tell({i, member, to, {(here - behind - i + 2 * n) % n}});
  }
}

/// The reduce-scatter of the other two algorithms.
void tell_scatter(const Lines& lines, std::size_t d, LineAlgorithm algorithm,
                  const TellLine& tell) {
  const int n = lines.size(d);
  for (int member = 0; member < lines.members(); ++member) {
    const int here = lines.place(member, d);
    if (algorithm == LineAlgorithm::kDirect) {
      for (int place = 0; place < n; ++place)
        if (place != here) tell({0, member, lines.at(member, d, place), {place}});
      continue;
    }
    // After t steps a member has the parts of all places that agree with it in the lowest t bits.
    for (int t = 0, distance = 1; distance < n; ++t, distance *= 2) {
      const int partner = here ^ distance;
      LineMessage message{t, member, lines.at(member, d, partner)};
      for (int place = partner % (2 * distance); place < n; place += 2 * distance)
        message.places.push_back(place);
      tell(message);
    }
  }
}

/// A reduce-scatter along all lines of a dimension, or an all-gather, which is the same backwards
/// but for rings.
void tell_lines(const Lines& lines, std::size_t d, const DimensionConfig& dimension, bool scatters,
                const TellLine& tell) {
  if (dimension.algorithm == LineAlgorithm::kRing) {
    tell_ring(lines, d, scatters ? 1 : 0, tell);
    return;
  }
  tell_scatter(lines, d, dimension.algorithm, [&](const LineMessage& message) {
    if (scatters) return tell(message);
    const int last = line_steps(dimension) - 1;
    tell({last - message.step, message.to, message.from, message.places});
  });
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
      const DimensionConfig& dimension = *collective.dimensions[phase.dimension];
      const int passes = phase.scatters && phase.gathers ? 2 : 1;
      send(collective, lines, phase, collective.bytes * (phase.share * passes), sink);
      steps += passes * line_steps(dimension);
    }
    return {.scale_up = steps};
  }

  Schedule schedule(const Collective& collective) const override {
    const Lines lines(collective);
    Schedule schedule{.chunks = collective.size()};
    std::vector<bool> scattered(collective.dimensions.size(),
                                collective.kind == TransferKind::kAllGather);
    for (const DimensionPhase& phase : dimension_phases(collective)) {
      const DimensionConfig& dimension = *collective.dimensions[phase.dimension];
      for (const bool scatters : {true, false}) {
        if (!(scatters ? phase.scatters : phase.gathers)) continue;
        scattered[phase.dimension] = false;
        add_pass(lines, scattered, phase.dimension, dimension, scatters, schedule);
        scattered[phase.dimension] = scatters;
      }
    }
    return schedule;
  }

 private:
  /// The messages of one pass along all lines of a dimension, behind what the schedule has.
  static void add_pass(const Lines& lines, const std::vector<bool>& scattered, std::size_t d,
                       const DimensionConfig& dimension, bool scatters, Schedule& schedule) {
    int first = 0;
    for (const auto& message : schedule.messages) first = std::max(first, message.step + 1);
    tell_lines(lines, d, dimension, scatters, [&](const LineMessage& message) {
      tell_parts(lines, scattered, d, message, [&](int owner) {
        schedule.messages.push_back({first + message.step,
                                     message.from,
                                     message.to,
                                     {owner, 1},
                                     scatters ? ChunkOp::kReduce : ChunkOp::kCopy});
      });
    });
  }

  /// What goes along all lines of a phase that scatters or gathers `bytes`.
  static void send(const Collective& collective, const Lines& lines, const DimensionPhase& phase,
                   Bytes bytes, FlowSink& sink) {
    const DimensionConfig& dimension = *collective.dimensions[phase.dimension];
    const int n = dimension.size;
    const auto rank = [&](int member) {
      return collective.group[static_cast<std::size_t>(member)];
    };
    for (int member = 0; member < lines.members(); ++member) {
      const int here = lines.place(member, phase.dimension);
      const auto add = [&](int place, Bytes part) {
        sink.add(rank(member), rank(lines.at(member, phase.dimension, place)), part);
      };
      switch (dimension.algorithm) {
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

  /// Calls `tell(owner)` for the chunks that a message of a phase moves: those of the members at
  /// its places which agree with the sender in all dimensions that are scattered already.
  template <class Tell>
  static void tell_parts(const Lines& lines, const std::vector<bool>& scattered, std::size_t d,
                         const LineMessage& message, Tell tell) {
    for (int owner = 0; owner < lines.members(); ++owner) {
      bool moves = false;
      for (const int place : message.places) moves = moves || lines.place(owner, d) == place;
      for (std::size_t other = 0; moves && other < scattered.size(); ++other)
        moves = !scattered[other] || lines.place(owner, other) == lines.place(message.from, other);
      if (moves) tell(owner);
    }
  }
};

const AlgorithmRegistry::Register registered_dimension_algorithm(
    "dimensions", "one dimension of the network after the other, each by its own algorithm",
    std::make_shared<DimensionAlgorithm>());

}  // namespace
}  // namespace orrery
