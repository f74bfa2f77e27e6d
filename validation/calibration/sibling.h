// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/calibration.h"
#include "validation/calibration/fit.h"

namespace orrery {

/// A device with its calibration.
struct CalibratedDevice {
  AcceleratorConfig accelerator;
  Calibration calibration;
};

/// Other devices of the library that are calibrated; asked for only where a table is at fault.
using CalibratedDevices = std::function<std::vector<CalibratedDevice>()>;

/// The parameters of the sibling for a table and precision of a device whose own table breaks
/// physics, by the data sheets of both (KernelFamily::transferred()), without the sibling's
/// measured ratios. The sibling is the device, fitted to a table of that kind by the same model,
/// whose rates of memory and matrix cores are nearest: the least sum of the logarithms of their
/// ratios. Nothing: there is none. Its residuals are the sibling's; errors it has none, as no row
/// of the device is fit to tell them.
std::optional<KernelFit> sibling_fit(const std::vector<CalibratedDevice>& devices,
                                     const std::string& model, const AcceleratorConfig& accelerator,
                                     const std::string& table, Precision precision);

/// Puts the sibling's values into a fit for the parameters of kernels that break physics, which no
/// row that is kept tells; its residuals too, as they are wider.
void borrow(const std::string& model, const AcceleratorConfig& accelerator,
            const std::vector<FitRow>& at_fault, const std::vector<FitRow>& kept,
            const KernelFit& sibling, KernelFit& fit);

}  // namespace orrery
