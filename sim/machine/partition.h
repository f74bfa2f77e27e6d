// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Turns the figures of a device into those of its `partition`; without one nothing changes.
///  - By share of the units: matrix, vector and special-function rates, and power, as if all parts
///    were busy (the cap and the idle power are of the board).
///  - By share of the memory slices: capacity and bandwidth of memory and cache, and what is shared
///    fairly on the way out, host_link and scale_out. A slice is an equal part of every stack.
///  - One unit, the clocks, energies and launch times are those of the device.
///  - A proper part has no scale_up ports: MIG instances do not reach other GPUs (NVIDIA MIG User
///    Guide, application considerations: no peer-to-peer, neither PCIe nor NVLink).
/// The schema applies it to every accelerator that is read; not to be applied twice.
void take_part(AcceleratorConfig& device);

}  // namespace orrery
