// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "models/kernels/device/family.h"
#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"
#include "sim/machine/calibration.h"

namespace orrery {

/// Every number of an accelerator that the time of a kernel can depend on, in a fixed order: what
/// was worked out for one accelerator holds for another one with the same numbers. Costs, energies
/// of links and texts are left out.
using DeviceNumbers = std::array<double, 130>;
DeviceNumbers device_numbers(const AcceleratorConfig& accelerator);

/// Beyond the rounding of data sheets.
bool differs(double a, double b);

/// Whether anything of the machine but its matrix rates is not what was measured.
bool another_machine(const CalibratedRates& rates, const AcceleratorConfig& accelerator);

/// Whether its L2, its exponentials or its way to load are not those of the device that was
/// measured.
bool other_structure(const AcceleratorConfig& measured, const AcceleratorConfig& accelerator);

/// Whether a kernel is of the shapes that were measured. Packed weights, tiles and clusters that a
/// user asks for, backward passes and caches of unequal lengths are in no table; tiles of scans are
/// part of them.
/// @param narrow weights of fewer bits than operands were fitted
bool inside(const ShapeRange& range, const Kernel& kernel, bool narrow);

double units_of_rank(const AcceleratorConfig& accelerator);

/// Bytes/us of the L2 of one rank; 0: there is none.
double cache_bandwidth(const AcceleratorConfig& accelerator);

/// The values of a family with those changed that a fit has from a sibling: a kernel whose time
/// that changes rests on them. Empty: it has none.
std::vector<double> shaken(const FamilyOf& of, const KernelFit& fit, std::vector<double> values);

}  // namespace orrery
