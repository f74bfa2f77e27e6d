// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/graph/kernel.h"
#include "workloads/layers/parts/layer_parts.h"

namespace orrery {

/// Rotary positions of the first `width` columns of all tokens, and the gradients of what was
/// rotated: one kernel that stands for those of the software of a training run.
Kernel rotated(const LayerTask& task, std::int64_t width);
Kernel rotated_backward(const LayerTask& task, std::int64_t width);

}  // namespace orrery
