// SPDX-License-Identifier: Apache-2.0
#include "workloads/schedules/order_check.h"

#include <fmt/core.h>

#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace orrery {
namespace {

using PassKind = Pass::Kind;
using Key = std::tuple<PassKind, int, std::int64_t>;

/// What must be there of a micro-batch in a chunk; a whole backward pass is both halves.
std::vector<PassKind> halves(PassKind kind) {
  if (kind == PassKind::kBackward) return {PassKind::kInputGradient, PassKind::kWeightGradient};
  return {kind};
}

/// Passes of a rank: in range, each once and behind what it needs on the same rank.
std::optional<PassFault> fault_of_rank(const PipelineShape& shape, int copies, int rank,
                                       const std::vector<Pass>& passes) {
  std::set<Key> done;
  const auto has = [&](PassKind kind, const Pass& pass) {
    return done.contains({kind, pass.chunk, pass.micro_batch});
  };
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Pass& pass = passes[i];
    const auto fault = [&](const std::string& what) {
      return PassFault{rank, i, to_string(pass) + what};
    };
    if (pass.chunk < 0 || pass.chunk >= shape.chunks)
      return fault(": there are " + std::to_string(shape.chunks) + " chunks, counted from 0");
    if (pass.micro_batch < 0 || pass.micro_batch >= shape.micro_batches)
      return fault(": there are " + std::to_string(shape.micro_batches) +
                   " micro-batches, counted from 0");
    if (pass.kind != PassKind::kForward && !has(PassKind::kForward, pass))
      return fault(" stands before its forward pass");
    if (pass.kind == PassKind::kWeightGradient && !has(PassKind::kInputGradient, pass))
      return fault(" stands before its gradients of activations");
    for (const PassKind half : halves(pass.kind)) {
      if (has(half, pass)) return fault(" is there twice");
      done.insert({half, pass.chunk, pass.micro_batch});
    }
  }
  const std::size_t all = 3 * static_cast<std::size_t>(shape.chunks * shape.micro_batches / copies);
  if (done.size() == all || copies > 1) return std::nullopt;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    for (std::int64_t i = 0; i < shape.micro_batches; ++i) {
      for (const PassKind kind :
           {PassKind::kForward, PassKind::kInputGradient, PassKind::kWeightGradient}) {
        const Pass missing{kind, chunk, i};
        if (!has(kind, missing))
          return PassFault{rank, passes.size(), to_string(missing) + " is missing"};
      }
    }
  }
  return std::nullopt;
}

/// Runs passes as their inputs come.
class Run {
 public:
  Run(const Placement& placement, const std::vector<std::vector<Pass>>& passes)
      : placement_(placement), passes_(passes), next_(passes.size()) {}

  std::optional<PassFault> first_fault() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < static_cast<int>(passes_.size()); ++rank) {
        while (run_next(rank)) moved = true;
        if (fault_) return fault_;
      }
    }
    for (std::size_t rank = 0; rank < passes_.size(); ++rank) {
      if (next_[rank] == passes_[rank].size()) continue;
      return PassFault{static_cast<int>(rank), next_[rank],
                       to_string(passes_[rank][next_[rank]]) +
                           " never starts: what it needs comes from a rank that waits itself"};
    }
    return std::nullopt;
  }

 private:
  using Wire = std::tuple<int, int, bool>;  ///< sender, receiver, whether forwards

  std::optional<ChunkPlace> other(ChunkPlace place, int distance) const {
    const auto found = placement_.neighbour(place, distance);
    return found && found->rank != place.rank ? found : std::nullopt;
  }

  /// Whether the input of a pass is there, in its turn.
  /// @param taken messages that passes beside it take first, by wire
  bool can_receive(ChunkPlace place, const Pass& pass, int way,
                   std::map<Wire, std::size_t>& taken) {
    const auto from = other(place, -way);
    if (!from) return true;
    const Wire name{from->rank, place.rank, way > 0};
    const auto wire = wires_.find(name);
    const std::size_t before = taken[name]++;
    if (wire == wires_.end() || wire->second.size() <= before) return false;
    const auto& [slice, micro_batch] = wire->second[before];
    if (slice == placement_.slice(*from) && micro_batch == pass.micro_batch) return true;
    fault_ = {place.rank, next_[static_cast<std::size_t>(place.rank)],
              fmt::format("{} gets the input of micro-batch {}, which rank {} sends first",
                          to_string(pass), micro_batch, from->rank)};
    return false;
  }

  /// Runs the next passes of a rank that stand side by side, if all their inputs are there.
  bool run_next(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    std::size_t last = next_[r];
    if (last == passes_[r].size() || fault_) return false;
    while (passes_[r][last].with_next && last + 1 < passes_[r].size()) ++last;
    std::map<Wire, std::size_t> taken;
    for (std::size_t i = next_[r]; i <= last; ++i) {
      const Pass& pass = passes_[r][i];
      if (pass.kind == PassKind::kWeightGradient) continue;
      if (!can_receive({rank, pass.chunk}, pass, pass.kind == PassKind::kForward ? 1 : -1, taken))
        return false;
    }
    for (; next_[r] <= last; ++next_[r]) pass_on(rank, passes_[r][next_[r]]);
    return true;
  }

  void pass_on(int rank, const Pass& pass) {
    if (pass.kind == PassKind::kWeightGradient) return;
    const int way = pass.kind == PassKind::kForward ? 1 : -1;
    const ChunkPlace place{rank, pass.chunk};
    if (const auto from = other(place, -way)) wires_[{from->rank, rank, way > 0}].pop_front();
    if (const auto to = other(place, way))
      wires_[{rank, to->rank, way > 0}].emplace_back(placement_.slice(place), pass.micro_batch);
  }

  const Placement& placement_;
  const std::vector<std::vector<Pass>>& passes_;
  std::vector<std::size_t> next_;
  std::map<Wire, std::deque<std::pair<int, std::int64_t>>> wires_;
  std::optional<PassFault> fault_;
};

}  // namespace

std::optional<PassFault> first_fault(const Placement& placement, const PipelineShape& shape,
                                     const std::vector<std::vector<Pass>>& passes) {
  for (std::size_t rank = 0; rank < passes.size(); ++rank) {
    if (auto fault = fault_of_rank(shape, placement.copies(), static_cast<int>(rank), passes[rank]))
      return fault;
  }
  return Run(placement, passes).first_fault();
}

std::string to_string(const Pass& pass) {
  const char kind = pass.kind == PassKind::kForward          ? 'F'
                    : pass.kind == PassKind::kWeightGradient ? 'W'
                                                             : 'B';
  return fmt::format("{}{}.{}", kind, pass.micro_batch, pass.chunk);
}

}  // namespace orrery
