// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/pipeline_schedule.h"

#include <algorithm>
#include <string>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

/// Passes number 0, 1, 2, ... of one direction, in Megatron-LM's order over chunks.
class PassOrder {
 public:
  PassOrder(int stages, int chunks) : stages_(stages), chunks_(chunks) {}

  PipelineSlot forward(std::int64_t pass) const { return {true, chunk(pass), micro_batch(pass)}; }
  PipelineSlot backward(std::int64_t pass) const {
    return {false, chunks_ - 1 - chunk(pass), micro_batch(pass)};
  }

 private:
  int chunk(std::int64_t pass) const { return static_cast<int>(pass / stages_ % chunks_); }
  std::int64_t micro_batch(std::int64_t pass) const {
    return pass / (std::int64_t{stages_} * chunks_) * stages_ + pass % stages_;
  }

  int stages_;
  int chunks_;
};

std::vector<PipelineSlot> warm_steady_cool(const PassOrder& order, std::int64_t passes,
                                           std::int64_t warm_up) {
  warm_up = std::min(warm_up, passes);
  std::vector<PipelineSlot> slots;
  slots.reserve(static_cast<std::size_t>(2 * passes));
  for (std::int64_t i = 0; i < warm_up; ++i) slots.push_back(order.forward(i));
  for (std::int64_t i = warm_up; i < passes; ++i) {
    slots.push_back(order.forward(i));
    slots.push_back(order.backward(i - warm_up));
  }
  for (std::int64_t i = passes - warm_up; i < passes; ++i) slots.push_back(order.backward(i));
  return slots;
}

}  // namespace

std::vector<PipelineSlot> one_forward_one_backward(int stages, int stage,
                                                   std::int64_t micro_batches) {
  // One chunk: groups of one micro-batch give the plain order, whatever their number.
  return warm_steady_cool(PassOrder(1, 1), micro_batches, stages - 1 - stage);
}

std::vector<PipelineSlot> interleaved(int stages, int chunks, int stage,
                                      std::int64_t micro_batches) {
  if (micro_batches % stages != 0) {
    throw config::KeyError("schedule", "interleaved needs micro-batches in multiples of pp = " +
                                           std::to_string(stages) + ", got " +
                                           std::to_string(micro_batches));
  }
  const std::int64_t warm_up =
      std::int64_t{2} * (stages - 1 - stage) + std::int64_t{chunks - 1} * stages;
  return warm_steady_cool(PassOrder(stages, chunks), micro_batches * chunks, warm_up);
}

std::int64_t peak_in_flight(const std::vector<PipelineSlot>& slots) {
  std::int64_t now = 0, peak = 0;
  for (const PipelineSlot& slot : slots) {
    now += slot.forward ? 1 : -1;
    peak = std::max(peak, now);
  }
  return peak;
}

}  // namespace orrery
