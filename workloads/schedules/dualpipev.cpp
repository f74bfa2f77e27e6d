// SPDX-License-Identifier: Apache-2.0
// DualPipeV: DualPipe cut in half, the two ways joined at the middle, so that chunks lie as a V and
// no slice is held twice (deepseek-ai/DualPipe, dualpipe/dualpipev.py).
#include <string>

#include "workloads/schedules/dual_passes.h"

namespace orrery {
namespace {

class DualPipeV final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {2, 2}; }
  std::string fault(const PipelineShape& shape) const override {
    return shape.micro_batches < std::int64_t{2} * shape.ranks ? "at least 2 * pp micro-batches"
                                                               : "";
  }
  Placement place(const PipelineShape& shape) const override {
    return Placement::folded(shape.ranks);
  }

  /// It pairs them anyway.
  bool can_pair(const PipelineShape&) const override { return true; }

  std::vector<Pass> passes(const PipelineShape& shape, int rank) const override {
    return dual_passes({.half = shape.ranks,
                        .from_end = rank,
                        .near_chunk = 0,
                        .micro_batches = shape.micro_batches});
  }

  /// (pp - 1) (F&B + B - 3 W) of chunks half as long, as in dualpipe.
  std::optional<double> bubble(const PipelineShape& shape) const override {
    const double filling = 2.0 * (shape.ranks - 1);
    return filling / (6.0 * static_cast<double>(shape.micro_batches) + filling);
  }
};

const ScheduleRegistry::Register dualpipev(
    "dualpipev", "DualPipeV: two chunks per stage that lie as a V, forward beside backward passes",
    std::make_shared<DualPipeV>());

}  // namespace
}  // namespace orrery
