// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// What a product's narrow weights take to become operands, at the peaks of vector lanes and units
/// for special functions; 0 where they are as wide as those.
struct Widening {
  double us = 0;
  bool apart = false;  ///< nothing is multiplied meanwhile
};

/// Weights are widened once for each block of rows that goes through the units. Where products of
/// several rows run in the lanes, a block of weights is widened between two barriers and multiplied
/// between the next two.
Widening widening_of(const Kernel& kernel, const AcceleratorConfig& accelerator);

}  // namespace orrery
