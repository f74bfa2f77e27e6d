// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Every number of an accelerator that the time of a kernel can depend on, in a fixed order: what
/// was worked out for one accelerator holds for another one with the same numbers. Costs, energies
/// of links and texts are left out.
using DeviceNumbers = std::array<double, 130>;
DeviceNumbers device_numbers(const AcceleratorConfig& accelerator);

}  // namespace orrery
