// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

/// One forward or backward pass of a chunk of layers.
struct PipelineSlot {
  bool forward = true;
  int chunk = 0;
  std::int64_t micro_batch = 0;
  bool operator==(const PipelineSlot&) const = default;
};

/// Passes of a stage in order: pp - 1 - stage forwards, then one forward and one backward in turn,
/// then the backwards left (PipeDream-Flush; Narayanan et al. 2021, section 2.2.1).
std::vector<PipelineSlot> one_forward_one_backward(int stages, int stage,
                                                   std::int64_t micro_batches);

/// Megatron-LM's interleaved 1F1B: micro-batches go through the chunks in groups of `stages`;
/// warm-up is 2 (stages - 1 - stage) + (chunks - 1) stages forwards (Narayanan et al. 2021,
/// section 2.2.2).
/// @throws config::ConfigError when micro_batches do not divide by stages.
std::vector<PipelineSlot> interleaved(int stages, int chunks, int stage,
                                      std::int64_t micro_batches);

/// The largest number of passes whose backward is still to come, over the slots of one stage.
std::int64_t peak_in_flight(const std::vector<PipelineSlot>& slots);

}  // namespace orrery
