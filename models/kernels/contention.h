// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery {

/// The shares of a device that a kernel gets while other kernels run.
struct Contention {
  double units = 1;   ///< share of the SMs
  double memory = 1;  ///< share of the memory bandwidth

  bool none() const { return units == 1 && memory == 1; }
};

}  // namespace orrery
