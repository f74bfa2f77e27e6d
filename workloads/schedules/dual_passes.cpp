// SPDX-License-Identifier: Apache-2.0
#include "workloads/schedules/dual_passes.h"

#include <cstddef>
#include <deque>

namespace orrery {
namespace {

using PassKind = Pass::Kind;

enum Way { kNear, kFar };

class DualWriter {
 public:
  explicit DualWriter(const DualRank& rank) : rank_(rank) {}

  void forward(Way way) { all_.push_back(next_forward(way)); }
  /// @param halved its gradients of weights wait for weights()
  void backward(Way way, bool halved = false) {
    Pass pass = next_backward(way);
    if (halved) pass.kind = PassKind::kInputGradient;
    if (halved) waiting_.push_back({PassKind::kWeightGradient, pass.chunk, pass.micro_batch});
    all_.push_back(pass);
  }
  void both(Way forward, Way backward) {
    all_.push_back(next_forward(forward));
    all_.back().with_next = true;
    all_.push_back(next_backward(backward));
  }
  /// The gradients of weights that have waited longest.
  void weights() {
    if (waiting_.empty()) return;
    all_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  const std::vector<Pass>& all() const { return all_; }

 private:
  int chunk(Way way) const { return way == kNear ? rank_.near_chunk : 1 - rank_.near_chunk; }
  Pass next_forward(Way way) { return next(PassKind::kForward, chunk(way), forwards_); }
  Pass next_backward(Way way) { return next(PassKind::kBackward, chunk(way), backwards_); }
  Pass next(PassKind kind, int chunk, std::array<std::int64_t, 2>& count) const {
    const auto c = static_cast<std::size_t>(chunk);
    return {kind, chunk, rank_.first.at(c) + count.at(c)++};
  }

  const DualRank& rank_;
  std::array<std::int64_t, 2> forwards_ = {0, 0}, backwards_ = {0, 0};
  std::deque<Pass> waiting_;
  std::vector<Pass> all_;
};

/// Up to where both ways are full.
void fill(DualWriter& writer, std::int64_t from_end, std::int64_t to_middle) {
  for (std::int64_t i = 0; i < 2 * to_middle; ++i) writer.forward(kNear);
  for (std::int64_t i = 0; i <= from_end; ++i) {
    writer.forward(kNear);
    writer.forward(kFar);
  }
  for (std::int64_t i = 0; i < to_middle; ++i) {
    writer.backward(kFar, true);
    writer.weights();
    writer.forward(kFar);
  }
}

/// From where no forwards of the near way are left.
void drain(DualWriter& writer, std::int64_t from_end, std::int64_t to_middle) {
  for (std::int64_t i = 0; i < to_middle; ++i) {
    writer.backward(kFar);
    writer.both(kFar, kNear);
  }
  // The second half of the passes of both ways leaves its gradients of weights for the end.
  const std::int64_t middle = (from_end + 1) / 2;
  const bool odd = from_end % 2 == 1;
  for (std::int64_t i = 0; i <= from_end; ++i) {
    writer.backward(kFar, i > middle || (i == middle && odd));
    writer.backward(kNear, i >= middle);
  }
  for (std::int64_t i = 0; i < to_middle; ++i) {
    writer.weights();
    writer.backward(kNear, true);
  }
  for (std::int64_t i = 0; i <= from_end; ++i) writer.weights();
}

}  // namespace

std::vector<Pass> dual_passes(const DualRank& rank) {
  const std::int64_t to_middle = rank.half - rank.from_end - 1;
  DualWriter writer(rank);
  fill(writer, rank.from_end, to_middle);
  const std::int64_t steady = rank.micro_batches - 2 * rank.half + rank.from_end + 1;
  for (std::int64_t i = 0; i < steady; ++i) {
    if (i == 0 && to_middle == 0) {  // one after the other: the next rank waits for the forward
      writer.forward(kNear);
      writer.backward(kFar);
    } else {
      writer.both(kNear, kFar);
    }
    writer.both(kFar, kNear);
  }
  drain(writer, rank.from_end, to_middle);
  return writer.all();
}

}  // namespace orrery
