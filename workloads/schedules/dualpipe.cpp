// SPDX-License-Identifier: Apache-2.0
// DualPipe: micro-batches enter at both ends; every slice is on two ranks, and a rank works
// forwards on one way beside backwards on the other (DeepSeek-V3, arXiv 2412.19437, section 3.2.1).
#include <algorithm>
#include <string>

#include "workloads/schedules/dual_passes.h"

namespace orrery {
namespace {

class DualPipe final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {2, 2}; }
  std::int64_t micro_batch_multiple(const PipelineShape&) const override { return 2; }
  std::string fault(const PipelineShape& shape) const override {
    if (shape.ranks % 2 != 0) return "an even number of pipeline stages";
    if (shape.micro_batches < std::int64_t{2} * shape.ranks) return "at least 2 * pp micro-batches";
    return {};
  }
  Placement place(const PipelineShape& shape) const override {
    return Placement::mirrored(shape.ranks);
  }

  /// It pairs them anyway.
  bool can_pair(const PipelineShape&) const override { return true; }

  std::vector<Pass> passes(const PipelineShape& shape, int rank) const override {
    const std::int64_t half = shape.micro_batches / 2;
    return dual_passes({.half = shape.ranks / 2,
                        .from_end = std::min(rank, shape.ranks - 1 - rank),
                        .near_chunk = rank < shape.ranks / 2 ? 0 : 1,
                        .micro_batches = half,
                        .first = {0, half}});
  }

  /// (pp / 2 - 1) (F&B + B - 3 W) of DeepSeek-V3, table 2, where nothing overlaps and forward
  /// passes and both halves of backward passes take equally long: pp - 2 of them.
  std::optional<double> bubble(const PipelineShape& shape) const override {
    const double filling = shape.ranks - 2;
    return filling / (3.0 * static_cast<double>(shape.micro_batches) + filling);
  }
};

const ScheduleRegistry::Register dualpipe("dualpipe",
                                          "DualPipe: micro-batches from both ends, each slice on "
                                          "two stages (vpp: 2), forward beside backward passes",
                                          std::make_shared<DualPipe>());

}  // namespace
}  // namespace orrery
