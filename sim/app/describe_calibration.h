// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/describe.h"
#include "sim/machine/calibration.h"

namespace orrery {

/// Errors of every fit, on what was fitted and on what was held out; of a single calibration also
/// its parameters with their standard errors, and the files it rests on.
Description describe_calibrations(const std::vector<Calibration>& calibrations);

}  // namespace orrery
