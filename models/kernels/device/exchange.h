// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/kernel.h"
#include "sim/units/units.h"

namespace orrery {

/// Bytes that units with a part of the memory each receive from others for a kernel, all together.
/// A product is cut into blocks of a x b results and c inputs summed over, a block for each unit,
/// in the way that moves least: each gets its inputs, its weights where other units work with the
/// same ones, and adds up partial sums of fp32 where the sum is cut (Agarwal et al., A
/// three-dimensional approach to parallel matrix multiplication, 1995). Positions that filters
/// share are sent once; their rims are left out. What units without a block could have received
/// counts. Attention gets what it reads; other kernels work on what their unit has.
Bytes exchanged_bytes(const Kernel& kernel, int units);

}  // namespace orrery
