// SPDX-License-Identifier: Apache-2.0
// ZB-V: two chunks per rank that lie as a V, so that the first rank has the last chunk too and its
// own gradients at once (Qi et al. 2023, arXiv 2401.10241, section 6; Qi et al. 2024, arXiv
// 2405.15362, V-ZB).
#include <algorithm>
#include <cstdint>

#include "workloads/schedules/schedule.h"

namespace orrery {
namespace {

/// The passes of a rank as they come, each kind of each chunk counting its own micro-batches.
class VWriter {
 public:
  using Kind = Pass::Kind;

  explicit VWriter(std::int64_t micro_batches) : micro_batches_(micro_batches) {}

  void forward(int chunk) { add(Kind::kForward, chunk, forwards_[chunk]++); }
  void input_gradient(int chunk) { add(Kind::kInputGradient, chunk, inputs_[chunk]++); }
  void weight_gradient(int chunk) { add(Kind::kWeightGradient, chunk, weights_[chunk]++); }
  void both_gradients(int chunk) {
    input_gradient(chunk);
    weight_gradient(chunk);
  }
  void weight_gradients_left(int chunk) {
    while (weights_[chunk] < inputs_[chunk]) weight_gradient(chunk);
  }

  std::int64_t forwards(int chunk) const { return forwards_[chunk]; }
  std::vector<Pass> all() const { return all_; }

 private:
  /// The order is that of a pipeline that is filled; fewer micro-batches leave passes out.
  void add(Kind kind, int chunk, std::int64_t micro_batch) {
    if (micro_batch < micro_batches_) all_.push_back({kind, chunk, micro_batch});
  }

  std::int64_t micro_batches_;
  std::int64_t forwards_[2] = {}, inputs_[2] = {}, weights_[2] = {};
  std::vector<Pass> all_;
};

class ZeroBubbleV final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {2, 2}; }
  Placement place(const PipelineShape& shape) const override {
    return Placement::folded(shape.ranks);
  }

  std::vector<Pass> passes(const PipelineShape& shape, int rank) const override {
    const std::int64_t filled = std::max(shape.micro_batches, std::int64_t{2} * shape.ranks - 1);
    const int behind = shape.ranks - rank;
    VWriter writer(shape.micro_batches);
    for (int i = 0; i < 2 * behind - 1; ++i) writer.forward(0);
    for (int i = 0; i < rank; ++i) {
      writer.forward(1);
      writer.forward(0);
    }
    for (int i = 0; i < behind; ++i) {
      writer.forward(1);
      writer.both_gradients(1);
    }
    while (writer.forwards(1) < writer.forwards(0) || writer.forwards(0) < filled) {
      if (writer.forwards(0) < filled) writer.forward(0);
      writer.both_gradients(0);
      writer.forward(1);
      writer.both_gradients(1);
    }
    for (int i = 0; i < rank; ++i) {
      writer.input_gradient(0);
      writer.input_gradient(1);
    }
    for (int i = 0; i < behind; ++i) {
      writer.input_gradient(0);
      writer.weight_gradient(0);
    }
    writer.weight_gradients_left(1);
    writer.weight_gradients_left(0);
    return writer.all();
  }

  /// As in zb_h2, of passes half as long, where the three kinds take equally long.
  std::optional<double> bubble(const PipelineShape& shape) const override {
    if (shape.micro_batches < 2 * shape.ranks - 1) return std::nullopt;
    const double filling = shape.ranks - 1;
    return filling / (6.0 * static_cast<double>(shape.micro_batches) + filling);
  }
};

const ScheduleRegistry::Register zb_v(
    "zb_v",
    "ZB-V: backward passes in halves, two chunks per rank that lie as a V, the memory of 1f1b, no "
    "bubble inside the pipeline",
    std::make_shared<ZeroBubbleV>());

}  // namespace
}  // namespace orrery
