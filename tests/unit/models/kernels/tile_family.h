// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/family.h"

namespace orrery {

/// The tile family of a class of kernels.
inline const KernelFamily& tile_family(KernelClass kind) {
  return *tile_families().at(kind).family;
}

}  // namespace orrery
