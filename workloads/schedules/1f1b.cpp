// SPDX-License-Identifier: Apache-2.0
// PipeDream-Flush: ranks - 1 - rank forwards, then one forward and one backward in turn, then the
// backwards left (Narayanan et al. 2021, section 2.2.1).
#include "workloads/schedules/schedule.h"

namespace orrery {
namespace {

class OneForwardOneBackward final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {1, 1}; }

  /// Megatron-Core asks several chunks for it where there are several ranks.
  bool can_pair(const PipelineShape& shape) const override { return shape.ranks == 1; }

  std::vector<Pass> passes(const PipelineShape& shape, int rank) const override {
    return alternating_passes(shape, 1, shape.ranks - 1 - rank);
  }

  /// The pipeline fills and drains for ranks - 1 of micro_batches + ranks - 1 passes each way.
  std::optional<double> bubble(const PipelineShape& shape) const override {
    const double filling = shape.ranks - 1;
    return filling / (static_cast<double>(shape.micro_batches) + filling);
  }
};

const ScheduleRegistry::Register one_forward_one_backward(
    "1f1b",
    "one forward and one backward pass in turn (PipeDream-Flush), one chunk of layers per rank",
    std::make_shared<OneForwardOneBackward>());

}  // namespace
}  // namespace orrery
