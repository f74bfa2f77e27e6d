// SPDX-License-Identifier: Apache-2.0
#include "workloads/schedules/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

namespace orrery {
namespace {

/// Passes number 0, 1, 2, ... of one direction, in Megatron-LM's order over chunks.
class ChunkOrder {
 public:
  ChunkOrder(int chunks, std::int64_t group) : chunks_(chunks), group_(group) {}

  Pass forward(std::int64_t pass) const {
    return {Pass::Kind::kForward, chunk(pass), micro_batch(pass)};
  }
  Pass backward(std::int64_t pass) const {
    return {Pass::Kind::kBackward, chunks_ - 1 - chunk(pass), micro_batch(pass)};
  }

 private:
  int chunk(std::int64_t pass) const { return static_cast<int>(pass / group_ % chunks_); }
  std::int64_t micro_batch(std::int64_t pass) const {
    return pass / (group_ * chunks_) * group_ + pass % group_;
  }

  int chunks_;
  std::int64_t group_;
};

std::string chunk_count(int chunks) {
  return std::to_string(chunks) + (chunks == 1 ? " chunk" : " chunks");
}

}  // namespace

std::string ChunkLimits::text() const {
  if (fewest == most) return chunk_count(fewest);
  if (most == std::numeric_limits<int>::max()) return "at least " + chunk_count(fewest);
  return fmt::format("{} to {}", fewest, chunk_count(most));
}

std::int64_t PipelineSchedule::micro_batch_multiple(const PipelineShape&) const { return 1; }

std::string PipelineSchedule::fault(const PipelineShape&) const { return {}; }

Placement PipelineSchedule::place(const PipelineShape& shape) const {
  return Placement::round_robin(shape.ranks, shape.chunks);
}

std::optional<double> PipelineSchedule::bubble(const PipelineShape&) const { return std::nullopt; }

std::string resolved_schedule(const std::string& name, int chunks) {
  if (name != kAutoSchedule) return name;
  return chunks > 1 ? "interleaved" : "1f1b";
}

std::vector<Pass> alternating_passes(const PipelineShape& shape, std::int64_t group,
                                     std::int64_t warm_up) {
  const ChunkOrder order(shape.chunks, group);
  const std::int64_t passes = shape.micro_batches * shape.chunks;
  // Megatron-Core 0.14 pipeline_parallel/schedules.py: get_pp_rank_microbatches.
  if (shape.pairs) ++warm_up;
  warm_up = std::min(warm_up, passes);
  std::vector<Pass> all;
  all.reserve(static_cast<std::size_t>(2 * passes));
  for (std::int64_t i = 0; i < warm_up; ++i) all.push_back(order.forward(i));
  for (std::int64_t i = warm_up; i < passes; ++i) {
    all.push_back(order.forward(i));
    all.back().with_next = shape.pairs;
    all.push_back(order.backward(i - warm_up));
  }
  for (std::int64_t i = passes - warm_up; i < passes; ++i) all.push_back(order.backward(i));
  return all;
}

}  // namespace orrery
