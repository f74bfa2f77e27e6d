// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/experiment.h"
#include "sim/config/diagnostics.h"
#include "sim/config/node.h"

namespace orrery {

/// What keys of an experiment say together and must not: what its kind needs, ranks that the
/// machine does not have, names that nothing bears.
/// @param node the completed configuration of `experiment`
void check_experiment(const Experiment& experiment, const config::Node& node,
                      config::Diagnostics& diagnostics);

}  // namespace orrery
