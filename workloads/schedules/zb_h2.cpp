// SPDX-License-Identifier: Apache-2.0
// ZB-H2: twice the micro-batches in flight fill the start too (Qi et al. 2023, arXiv 2401.10241,
// section 2.2).
#include "workloads/schedules/zero_bubble.h"

namespace orrery {
namespace {

class ZeroBubbleH2 final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {1, 1}; }

  std::vector<Pass> passes(const PipelineShape& shape, int rank) const override {
    return zero_bubble_passes(shape.micro_batches, std::int64_t{2} * (shape.ranks - 1 - rank),
                              std::int64_t{2} * rank);
  }

  /// Between its first and its last pass no rank waits where the three passes take equally long; of
  /// a step alone, later ranks start and earlier ranks end one forward pass apart. The paper's
  /// bubble of 0 is that of steps that follow each other without a barrier (section 4).
  std::optional<double> bubble(const PipelineShape& shape) const override {
    if (shape.micro_batches < 2 * shape.ranks - 1) return std::nullopt;
    const double filling = shape.ranks - 1;
    return filling / (3.0 * static_cast<double>(shape.micro_batches) + filling);
  }
};

const ScheduleRegistry::Register zb_h2(
    "zb_h2",
    "ZB-H2: backward passes in halves, 2 pp - 1 micro-batches in flight, no bubble inside the "
    "pipeline, one chunk per rank",
    std::make_shared<ZeroBubbleH2>());

}  // namespace
}  // namespace orrery
