// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/serving/scheduler.h"
#include "workloads/steps/inference/inference.h"

namespace orrery {

/// The kernels that an engine runs.
/// @param config its formats and its plan have to be there
void use_kernels(const SchedulerConfig& engine, InferenceConfig& config);
/// The kernels of its all-reduces.
/// @param config has its kernels
EngineAllReduce all_reduce_rules(const SchedulerConfig& engine, const InferenceConfig& config);

}  // namespace orrery
