// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "models/kernels/device/block_plan.h"
#include "models/kernels/tiles/decode_kernels.h"
#include "sim/graph/kernel.h"

namespace orrery {

/// What a kernel takes were all its sequences of one length.
/// @param tokens in the cache of a sequence
/// @param splits blocks for each head of a sequence; 0: by the rule of the kernel
using TimeAtLength = std::function<DecodeTime(double tokens, double splits)>;

/// The blocks of new tokens over their caches. A sequence has those that the kernel's rule gives
/// it, where the longest one says how contexts are split; they come sequence after sequence and
/// each has its share of the work, the wait and the traffic that the closed form knows of a kernel
/// whose sequences are all as long. Blocks of a unit share its pipe, all share memory and L2;
/// parts are put together once the last of them has ended. As many are resident as hide each
/// other's waits, in waves of equal size, which is what the closed form says of equal sequences;
/// by how much its p-norm is above the slowest of work, wait and traffic scales the blocks' time.
/// So equal sequences take the time of the closed form, and others what their order and the longest
/// of them make of it.
/// @param of what the kernel's closed form says, for the mean length
BlockPlan decode_plan(const Kernel& kernel, const DecodeProblem& device, const DecodeTime& of,
                      const TimeAtLength& at);

/// The same for blocks that do equal parts of all sequences, however long.
BlockPlan even_plan(const Kernel& kernel, const DecodeProblem& device, const DecodeTime& of,
                    const DecodeTime& all);

}  // namespace orrery
