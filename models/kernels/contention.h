// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery {

/// What other kernels leave of the device to a kernel that runs beside them.
struct Contention {
  double units = 1;   ///< share of the SMs
  double memory = 1;  ///< share of the memory bandwidth

  bool none() const { return units == 1 && memory == 1; }
};

}  // namespace orrery
