// SPDX-License-Identifier: Apache-2.0
// GPipe: all forwards, then all backwards (Huang et al. 2019, section 2.3), backwards in the order
// of forwards as in PyTorch's ScheduleGPipe.
#include "workloads/schedules/schedule.h"

namespace orrery {
namespace {

class GPipe final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {1, 1}; }

  std::vector<Pass> passes(const PipelineShape& shape, int) const override {
    return alternating_passes(shape, 1, shape.micro_batches);
  }

  /// The pipeline fills and drains once for the forward and once for the backward passes.
  std::optional<double> bubble(const PipelineShape& shape) const override {
    const double filling = shape.ranks - 1;
    return filling / (static_cast<double>(shape.micro_batches) + filling);
  }
};

const ScheduleRegistry::Register gpipe(
    "gpipe", "all forward passes, then all backward passes, one chunk of layers per rank",
    std::make_shared<GPipe>());

}  // namespace
}  // namespace orrery
