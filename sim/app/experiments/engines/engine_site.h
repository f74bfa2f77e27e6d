// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/app/experiments/keys/speculative_config.h"
#include "sim/machine/accelerator_config.h"
#include "sim/serving/engine_release.h"
#include "workloads/plan/parallel_config.h"

namespace orrery {

/// Device, memory and plan of a group of ranks, on which defaults of engines depend. Its model is
/// not known.
EngineSite engine_site(const AcceleratorConfig& accelerator, const ParallelConfig& parallel);

/// What defaults of an engine depend on, of a group of ranks. It refers to the model, which is
/// built only where a default depends on it; one that cannot be built has neither recurrent layers
/// nor experts.
EngineSite engine_site(const AcceleratorConfig& accelerator, const ParallelConfig& parallel,
                       const ModelConfig& model,
                       const std::optional<SpeculativeConfig>& speculative);

}  // namespace orrery
