// SPDX-License-Identifier: Apache-2.0
// ZB-H1: no more in flight than rank 0 of 1F1B has; gradients of weights fill the end (Qi et al.
// 2023, arXiv 2401.10241, section 2.1).
#include "workloads/schedules/zero_bubble.h"

namespace orrery {
namespace {

class ZeroBubbleH1 final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {1, 1}; }

  std::vector<Pass> passes(const PipelineShape& shape, int rank) const override {
    return zero_bubble_passes(shape.micro_batches, shape.ranks - 1 - rank, rank);
  }

  /// (ranks - 1) (T_F + T_B - T_W) of the paper, known here where the three passes take equally
  /// long: one forward pass for each rank but one.
  std::optional<double> bubble(const PipelineShape& shape) const override {
    if (shape.micro_batches < 2 * shape.ranks - 1) return std::nullopt;
    const double filling = shape.ranks - 1;
    return filling / (3.0 * static_cast<double>(shape.micro_batches) + filling);
  }
};

const ScheduleRegistry::Register zb_h1("zb_h1",
                                       "ZB-H1: backward passes in halves, as many micro-batches in "
                                       "flight as rank 0 of 1f1b has, one chunk per rank",
                                       std::make_shared<ZeroBubbleH1>());

}  // namespace
}  // namespace orrery
