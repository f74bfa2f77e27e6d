// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/experiments/experiment.h"
#include "sim/graph/costs.h"
#include "sim/graph/transfer.h"
#include "sim/units/units.h"

namespace orrery {

/// What the price of a transfer rests on: kAnalytic where no measured collective tells about it
/// (no calibration of the network, tokens to experts, parts of different sizes, copies to hosts),
/// kCalibrated where it is like those that were measured, else kExtrapolated.
Provenance transfer_provenance(const Experiment& experiment, const Transfer& transfer);

/// How many times longer it takes, by draw: the spread that measured collectives of such a time
/// have about their fit. All of a kind err together. Empty: nothing measured tells about it.
std::vector<double> transfer_draws(const Experiment& experiment, const Transfer& transfer,
                                   Seconds time);

}  // namespace orrery
