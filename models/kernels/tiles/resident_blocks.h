// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// What is at hand to hide the loads of main loops. With asynchronous copies a block loads the next
/// steps while it computes. Without them it loads, waits and computes: o blocks on a unit compute
/// in turn while the others load, so that a step takes no less than its parts one after the other,
/// over o. With blocks enough both are the same.
struct LoadHiding {
  bool async_copy = true;
  double shared = 0, results = 0;  ///< bytes of a unit; infinite where not known
  bool together = false;           ///< results lie in the shared memory too
  double most = 1;                 ///< blocks that a unit takes

  /// Blocks of `step_bytes` of operands, held once, and of so many results of 32 bits on a unit; of
  /// `tiles` for each unit no more than there are.
  double resident(double step_bytes, double results_held, double tiles) const;
  /// A step, or any number of them.
  /// @param overlapped when all its parts run beside each other
  /// @param serial when they run one after the other
  double step_us(double overlapped, double serial, double blocks) const {
    return async_copy ? overlapped : std::max(overlapped, serial / blocks);
  }
};

LoadHiding load_hiding(const AcceleratorConfig& accelerator);

}  // namespace orrery
