// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/layers/parts/linear.h"

namespace orrery {

/// Whether products work on chunks beside the transfers of others: Transformer Engine's user
/// buffers.
bool in_chunks(const RankWork& work);

/// What brings an operand of a product into user buffers. Scales of blocks, one of a byte for 32
/// values, go by a collective of their own, for which the device waits.
void fill_buffer(StepList& steps, const RankWork& work, const Linear& linear,
                 const std::string& name, std::int64_t width);

/// The product of a gathered operand, as its parts come round the ring: a rank's own first.
/// @param gather the whole of it
void product_of_parts(StepList& steps, const RankWork& work, const LayerCollective& gather,
                      const std::vector<Kernel>& whole);

/// A product whose parts are scattered beside the next ones.
void scatter_parts(StepList& steps, const RankWork& work, const LayerCollective& scatter,
                   const Kernel& whole);

}  // namespace orrery
