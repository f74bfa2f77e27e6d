// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/units/units.h"
#include "workloads/steps/training/pieces.h"

namespace orrery {

/// Messages of one micro-batch that a chunk of a pipeline stage keeps in memory if the software
/// does so (TrainingSoftware::keeps_messages), in bytes; none at the ends of the pipeline.
struct KeptMessages {
  Bytes received;  ///< activations, which are the input of the chunk's first layer
  Bytes sent;      ///< activations, until their gradient is used; the gradient has as many
};
KeptMessages kept_messages(const Pieces& pieces, const RankWork& work, ChunkPlace place);

/// Micro-batches of a step on a rank.
std::int64_t micro_batches(const TrainingConfig& config);

}  // namespace orrery
