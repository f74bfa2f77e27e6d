// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/machine/calibration.h"
#include "sim/machine/kernel_model.h"
#include "validation/calibration/errors.h"
#include "validation/calibration/fit.h"

namespace orrery {

/// Leaves out one group of rows (a whole model) after the other, fits the others anew, parameters
/// and measured ratios, and predicts the one left out: what a user's model, which no fit has seen,
/// meets. Each group counts by its rows.
/// @param calibration of the device, of which only rates and names are used
/// @param fit of some of the groups: where each of the solves begins
/// @param free parameters, all of them
/// @param rows of all groups
/// @param ratios that a fit keeps
/// @return predicted and measured times of all rows; none where there are fewer than three groups,
/// as of two each would be the other's only teacher
std::vector<Comparison> leave_models_out(const Calibration& calibration,
                                         const AcceleratorConfig& accelerator, const KernelFit& fit,
                                         const std::vector<std::string>& free,
                                         const std::vector<FitRow>& rows, std::size_t ratios);

/// us that a row's kernels take together.
double predicted_us(KernelPrices& prices, const FitRow& row);

/// Groups of rows that one can be left out of.
constexpr std::size_t kFewestModels = 3;
std::set<std::string> groups_of(const std::vector<FitRow>& rows);

}  // namespace orrery
