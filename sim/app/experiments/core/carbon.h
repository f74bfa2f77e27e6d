// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/results/run_record.h"
#include "sim/units/units.h"

namespace orrery {

inline constexpr const char* kCarbonIntensityHelp =
    "mass of CO2 per energy of the grid: 400 gCO2/kWh. Without it, or with 0, no CO2 is reported";

/// Reports the CO2 of the energy that a record has: of a million tokens, and of a step. The energy
/// is that of the systems if the record has their power, else that of the accelerators.
void report_carbon(std::optional<CarbonIntensity> intensity, RunRecord& record);

}  // namespace orrery
