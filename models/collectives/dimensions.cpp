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
#include <utility>
#include <vector>

#include "models/collectives/dimension_phases.h"
#include "models/collectives/grid.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

/// The members of a group that fills dimensions.
Grid grid_of(const Collective& collective) {
  std::vector<int> sizes(collective.dimensions.size());
  std::transform(collective.dimensions.begin(), collective.dimensions.end(), sizes.begin(),
                 [](const DimensionConfig* dimension) { return dimension->size; });
  return Grid(std::move(sizes));
}

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

/// Messages that the ranks of one line send each other in a phase.
Schedule line_schedule(const Collective& line, const DimensionConfig& dimension) {
  if (dimension.algorithm == LineAlgorithm::kHalvingDoubling)
    return halving_doubling(line, line_steps(dimension));
  const bool ring = dimension.algorithm == LineAlgorithm::kRing;
  return AlgorithmRegistry::at("collective", ring ? "ring" : "direct")->schedule(line);
}

class DimensionAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    using enum TransferKind;
    return collective.is_any({kAllReduce, kAllGather, kReduceScatter}) &&
           !collective.dimensions.empty();
  }

  bool counts_links() const override { return true; }
  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Grid grid = grid_of(collective);
    int steps = 0;
    for (const DimensionPhase& phase : dimension_phases(collective)) {
      const int passes = phase.scatters() && phase.gathers() ? 2 : 1;
      send(collective, grid, static_cast<int>(phase.dimension),
           collective.bytes * (phase.share * passes), sink);
      steps += passes * line_steps(*collective.dimensions[phase.dimension]);
    }
    return {.scale_up = steps};
  }

  Schedule schedule(const Collective& collective) const override {
    const Grid grid = grid_of(collective);
    Schedule schedule{.chunks = collective.size()};
    std::vector<bool> scattered(collective.dimensions.size(),
                                collective.kind == TransferKind::kAllGather);
    for (const DimensionPhase& phase : dimension_phases(collective)) {
      scattered[phase.dimension] = false;
      add_phase(collective, grid, scattered, phase, schedule);
      scattered[phase.dimension] = !phase.gathers();
    }
    return schedule;
  }

 private:
  /// Messages along all lines of a dimension that scatter or gather `bytes`.
  static void send(const Collective& collective, const Grid& grid, int d, Bytes bytes,
                   FlowSink& sink) {
    const int n = grid.size(d);
    for (int member = 0; member < grid.members(); ++member) {
      const int here = grid.coordinate(member, d);
      const auto add = [&](int hops, Bytes part) {
        sink.add(collective.rank(member), collective.rank(grid.moved(member, d, hops)), part);
      };
      switch (collective.dimensions[index(d)]->algorithm) {
        case LineAlgorithm::kRing:
          add(1, bytes / n * (n - 1));
          break;
        case LineAlgorithm::kDirect:
          for (int i = 1; i < n; ++i) add(i, bytes / n);
          break;
        case LineAlgorithm::kHalvingDoubling:
          for (int distance = 1; distance < n; distance *= 2)
            add((here ^ distance) - here, bytes / (2 * distance));
          break;
      }
    }
  }

  /// The messages of a phase along all lines, behind what the schedule has. One about a place of a
  /// line moves the chunks of all members there which agree with the sender in the dimensions that
  /// are scattered already.
  static void add_phase(const Collective& collective, const Grid& grid,
                        const std::vector<bool>& scattered, const DimensionPhase& phase,
                        Schedule& schedule) {
    const int d = static_cast<int>(phase.dimension);
    int first = 0;
    for (const Message& message : schedule.messages) first = std::max(first, message.step + 1);
    const std::span<const int> places = collective.group.first(index(grid.size(d)));
    const Schedule line = line_schedule({phase.kind, Bytes(0), places, collective.layout},
                                        *collective.dimensions[phase.dimension]);
    for (const Message& message : line.messages) {
      for (int owner = 0; owner < grid.members(); ++owner) {
        if (grid.coordinate(owner, d) != message.chunks.first) continue;
        for (int from = 0; from < grid.members(); ++from) {
          bool moves = grid.coordinate(from, d) == message.from;
          for (int other = 0; moves && other < grid.axes(); ++other)
            moves = !scattered[index(other)] ||
                    grid.coordinate(owner, other) == grid.coordinate(from, other);
          const int to = grid.moved(from, d, message.to - message.from);
          if (moves)
            schedule.messages.push_back({first + message.step, from, to, {owner, 1}, message.op});
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
