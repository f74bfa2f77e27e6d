// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/experiment.h"
#include "sim/config/diagnostics.h"

namespace orrery {

/// What the Hugging Face file of an experiment's model brings: its warnings and, where nobody wrote
/// the precision of inference or of its KV cache, that of the checkpoint, which then stands in the
/// configuration with the file as its origin. A KV cache whose scales it does not bring stays. A
/// model that cannot be built is reported where it is built.
void read_checkpoint(LoadedExperiment& loaded, config::Diagnostics& diagnostics);

}  // namespace orrery
