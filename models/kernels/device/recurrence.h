// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Whether a kernel is a recurrence on vector lanes: `batch` thread blocks of k threads, each over
/// m tokens one after the other, with n elements of a state for each thread.
bool is_recurrence(const Kernel& kernel);

/// What a recurrence takes on a die, in microseconds, launch and bytes apart: each multiply-add of
/// a thread takes an operand of 4 bytes from the unit's shared memory, which gives 128 bytes a
/// clock (NVIDIA Hopper tuning guide; AMD's LDS gives as much). That is what bounds many blocks: 8
/// sequences of 4,096 tokens with 64 heads on an A800 take 7.4 ms by it, and 9.2 and 7.1 ms in
/// BlinkDL/RWKV-CUDA pull request 14, before and after wider loads. A block alone waits for its
/// operands at every token, while others of the unit may run.
/// @param vector us of the device's vector lanes for it
double recurrence_us(const Kernel& kernel, const AcceleratorConfig& accelerator, double vector);

}  // namespace orrery
