// SPDX-License-Identifier: Apache-2.0
// Megatron-LM's interleaved 1F1B: micro-batches go through the chunks in groups of `ranks`; warm-up
// is 2 (ranks - 1 - rank) + (chunks - 1) ranks forwards (Narayanan et al. 2021, section 2.2.2).
#include "workloads/schedules/schedule.h"

namespace orrery {
namespace {

class Interleaved final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {.fewest = 2}; }

  std::int64_t micro_batch_multiple(const PipelineShape& shape) const override {
    return shape.ranks;
  }

  bool can_pair(const PipelineShape&) const override { return true; }

  std::vector<Pass> passes(const PipelineShape& shape, int rank) const override {
    const std::int64_t warm_up =
        std::int64_t{2} * (shape.ranks - 1 - rank) + std::int64_t{shape.chunks - 1} * shape.ranks;
    return alternating_passes(shape, shape.ranks, warm_up);
  }

  /// The pipeline fills and drains in passes that are `chunks` times as short.
  std::optional<double> bubble(const PipelineShape& shape) const override {
    const double filling = shape.ranks - 1;
    return filling / (static_cast<double>(shape.micro_batches) * shape.chunks + filling);
  }
};

const ScheduleRegistry::Register interleaved(
    "interleaved",
    "Megatron-LM's interleaved 1F1B: at least two chunks per rank, micro-batches in groups of pp",
    std::make_shared<Interleaved>());

}  // namespace
}  // namespace orrery
