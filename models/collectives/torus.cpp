// SPDX-License-Identifier: Apache-2.0
// Axis after axis on a torus, in rings that run both ways. The buffer is cut into as many colours
// as there are axes, each beginning with another axis, so that all links work all the time (Jain
// and Sabharwal, "Optimal bucket algorithms for large MPI collectives on torus interconnects",
// ICS 2010; Kumar et al., "Exploring the limits of concurrency in ML training on Google TPUs",
// MLSys 2021). Of a buffer S over n ranks on k axes of length d
//
//   all_gather, reduce_scatter    (n-1)/n S / (2k) a link   in  sum of (d-1) steps
//   all_reduce                   2(n-1)/n S / (2k) a link   in 2 sum of (d-1) steps
#include <functional>
#include <memory>

#include "models/collectives/grid.h"
#include "models/collectives/schedule.h"

namespace orrery {
namespace {

/// A share of the buffer: the axis it begins with, and the way round.
struct Colour {
  int first_axis = 0;
  int way = 1;  ///< 1 or -1
};

/// The k-th axis that a colour walks.
int axis_of(const Grid& grid, Colour colour, int phase) {
  return (colour.first_axis + phase) % grid.axes();
}

/// Calls `visit(owner)` for the members that agree with `target` on the first axes of a colour, up
/// to and including `phase`: their parts go towards `target` there.
template <class Visit>
void owners(const Grid& grid, Colour colour, int phase, int target, Visit visit) {
  for (int owner = 0; owner < grid.members(); ++owner) {
    bool matches = true;
    for (int done = 0; done <= phase; ++done) {
      const int axis = axis_of(grid, colour, done);
      matches = matches && grid.coordinate(owner, axis) == grid.coordinate(target, axis);
    }
    if (matches) visit(owner);
  }
}

/// One step of a colour along an axis: every member passes on the parts that lie `behind` hops
/// behind it. `tell(from, to, owner)`.
template <class Tell>
void shift(const Grid& grid, Colour colour, int phase, int behind, Tell tell) {
  const int axis = axis_of(grid, colour, phase);
  for (int from = 0; from < grid.members(); ++from) {
    const int to = grid.moved(from, axis, colour.way);
    const int target = grid.moved(from, axis, -colour.way * behind);
    owners(grid, colour, phase, target, [&](int owner) { tell(from, to, owner); });
  }
}

/// The reduce-scatter of one colour; `tell(step, from, to, owner)`.
template <class Tell>
void scatter(const Grid& grid, Colour colour, Tell tell) {
  int step = 0;
  for (int phase = 0; phase < grid.axes(); ++phase) {
    for (int behind = 1; behind < grid.size(axis_of(grid, colour, phase)); ++behind, ++step) {
      shift(grid, colour, phase, behind,
            [&](int from, int to, int owner) { tell(step, from, to, owner); });
    }
  }
}

/// All hops around a ring but the shortest.
StepCount slowest_chain(const Collective& collective, const Grid& grid, int axis, Colour colour,
                        int start) {
  StepCount ring, shortest;
  for (int hop = 0, at = start; hop < grid.size(axis); ++hop) {
    const int next = grid.moved(at, axis, colour.way);
    const StepCount step = collective.step(at, next);
    ring = ring + step;
    if (hop == 0 || longer(shortest, step) == shortest) shortest = step;
    at = next;
  }
  return ring - shortest;
}

/// What a chunk goes through in one pass: a chain along every axis.
StepCount longest_pass(const Collective& collective, const Grid& grid) {
  if (collective.routes == nullptr) return {.scale_up = grid.steps()};
  StepCount pass;
  for (int axis = 0; axis < grid.axes(); ++axis) {
    StepCount slowest;
    for (int member = 0; member < grid.members(); ++member) {
      if (grid.coordinate(member, axis) != 0) continue;
      for (const int way : {1, -1})
        slowest = longer(slowest, slowest_chain(collective, grid, axis, {axis, way}, member));
    }
    pass = pass + slowest;
  }
  return pass;
}

class TorusAlgorithm final : public CollectiveAlgorithm {
 public:
  bool serves(const Collective& collective) const override {
    using enum TransferKind;
    return collective.is_any({kAllReduce, kAllGather, kReduceScatter}) &&
           !collective.torus.empty() && !collective.spans_systems() &&
           Grid(collective.torus).members() == collective.size();
  }

  bool counts_links() const override { return true; }
  StepCount run(const Collective& collective, FlowSink& sink) const override {
    const Grid grid(collective.torus);
    const int passes = collective.kind == TransferKind::kAllReduce ? 2 : 1;
    const Bytes colour_bytes = collective.bytes * (static_cast<double>(passes) / (2 * grid.axes()));
    std::vector<Bytes> per_link(collective.torus.size());  // by axis
    for (int first = 0; first < grid.axes(); ++first) {
      Bytes left = colour_bytes;  // what a member still reduces
      for (int phase = 0; phase < grid.axes(); ++phase) {
        const int axis = axis_of(grid, {first}, phase);
        left = left / grid.size(axis);
        per_link[static_cast<std::size_t>(axis)] += left * (grid.size(axis) - 1);
      }
    }
    for (int member = 0; member < grid.members(); ++member) {
      for (int axis = 0; axis < grid.axes(); ++axis) {
        if (grid.size(axis) == 1) continue;
        for (const int way : {1, -1}) {
          sink.add(collective.rank(member), collective.rank(grid.moved(member, axis, way)),
                   per_link[static_cast<std::size_t>(axis)]);
        }
      }
    }
    const StepCount pass = longest_pass(collective, grid);
    return passes == 2 ? pass + pass : pass;
  }

  Schedule schedule(const Collective& collective) const override {
    const Grid grid(collective.torus);
    const int colours = 2 * grid.axes();
    const bool reduce = collective.kind != TransferKind::kAllGather;
    const bool gather = collective.kind != TransferKind::kReduceScatter;
    Schedule schedule{.chunks = colours * collective.size()};
    for (int colour = 0; colour < colours; ++colour) {
      const Colour share{colour / 2, colour % 2 == 0 ? 1 : -1};
      scatter(grid, share, [&](int step, int from, int to, int owner) {
        const ChunkRange chunk{owner * colours + colour, 1};
        if (reduce) schedule.reduce(step, from, to, chunk);
        // The gather is the same backwards.
        const int back = grid.steps() - 1 - step + (reduce ? grid.steps() : 0);
        if (gather) schedule.copy(back, to, from, chunk);
      });
    }
    return schedule;
  }
};

const AlgorithmRegistry::Register registered_torus_algorithm(
    "torus", "axis after axis on a torus, both ways round, every axis at work all the time",
    std::make_shared<TorusAlgorithm>());

}  // namespace
}  // namespace orrery
