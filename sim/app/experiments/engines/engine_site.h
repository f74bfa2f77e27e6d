// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/keys/inference_keys.h"
#include "sim/machine/accelerator_config.h"
#include "sim/serving/engine_release.h"
#include "sim/serving/scheduler.h"
#include "workloads/plan/parallel_config.h"
#include "workloads/steps/inference/inference.h"

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

/// An engine with the defaults that its version has at a site. Without an object where nothing is
/// known of the engine or of its version.
/// @param engine as measurements name it: "trtllm" is TensorRT-LLM
config::OneOf<SchedulerConfig> measured_engine(std::string engine, const std::string& version,
                                               const EngineSite& site);

/// The kernels that an engine runs.
/// @param config its formats and its plan have to be there
void use_kernels(const SchedulerConfig& engine, InferenceConfig& config);
/// The kernels of its all-reduces.
/// @param config has its kernels
EngineAllReduce all_reduce_rules(const SchedulerConfig& engine, const InferenceConfig& config);

}  // namespace orrery
