// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/program.h"

namespace orrery {

/// Sets Kernel::reuse of all kernels of a program: weights and cached tokens are touched once a
/// step, so between two times lies all that the role reads and writes in it. Of roles that share a
/// kernel, the one that touches least counts.
void set_reuse(Program& program);

}  // namespace orrery
