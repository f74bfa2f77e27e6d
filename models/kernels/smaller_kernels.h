// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/kernel.h"

namespace orrery {

/// The same kernel over half of its sequences, of its cached tokens (new tokens over a cache) and
/// of its rows (products, those of experts too, which stay active), a quarter, an eighth, ..., in
/// all combinations: what can take no longer. None for kernels whose size is something else, and
/// for caches of unequal lengths.
std::vector<Kernel> smaller_kernels(const Kernel& kernel);

}  // namespace orrery
